#include "client/commands/estimate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/display/numbers.h"

namespace lengthwise::client {
namespace {

// The newest experiments that trained. Among the listed ones many may be evaluations, which did
// not.
constexpr size_t kExperimentsAsked = 10;
constexpr size_t kExperimentsListed = 200;

// Key of everything that affects the time of a step. Learning rate, seeds and recording intervals
// do not.
std::string CostKey(const v1::TrialSpecification& specification) {
  const auto component = [](const v1::Component& one) {
    std::string text = one.name();
    // Sorted, because a protobuf map has no order.
    std::map<std::string, std::string> parameters;
    for (const auto& [name, value] : one.parameters()) {
      parameters[name] = value.SerializeAsString();
    }
    for (const auto& [name, value] : parameters) absl::StrAppend(&text, "|", name, "=", value);
    return text;
  };
  const v1::Training& training = specification.training();
  return absl::StrCat(component(specification.task()), "#", component(specification.network()), "#",
                      component(specification.encoding()), "#", training.batch_size(), "#",
                      training.lengths().min(), "#", training.lengths().max(), "#",
                      training.precision());
}

}  // namespace

double EstimateSeconds(const specification::Grid& grid, const std::vector<v1::Trial>& earlier,
                       int& based_on) {
  struct Cost {
    double step_seconds = 0;
    double evaluation_seconds = 0;
    int count = 0;
  };
  std::map<std::string, Cost> costs;
  for (const v1::Trial& trial : earlier) {
    const int64_t steps = trial.specification().training().steps();
    // An evaluation has the steps of the trial that it evaluates, but did not train them.
    if (!trial.specification().evaluated_trial().empty()) continue;
    // A resumed trial's seconds cover its last attempt only.
    if (trial.state() != v1::SUCCEEDED || trial.attempt() != 1 || steps < 1) continue;
    Cost& cost = costs[CostKey(trial.specification())];
    cost.step_seconds += trial.outcome().training_seconds() / static_cast<double>(steps);
    cost.evaluation_seconds += trial.outcome().evaluation_seconds();
    ++cost.count;
  }
  double seconds = 0;
  based_on = 0;
  std::map<std::string, bool> used;
  for (const specification::GridTrial& trial : grid.trials) {
    const std::string key = CostKey(trial.pack->specification);
    const auto found = costs.find(key);
    if (found == costs.end()) return -1;
    const Cost& cost = found->second;
    seconds +=
        (cost.step_seconds * static_cast<double>(trial.pack->specification.training().steps()) +
         cost.evaluation_seconds) /
        cost.count;
    if (!std::exchange(used[key], true)) based_on += cost.count;
  }
  return seconds;
}

TimeEstimate EstimateTime(Connection& connection, const specification::Grid& grid, int workers,
                          const std::string& extended) {
  const auto unknown = [](absl::string_view why) {
    return TimeEstimate{.text = absl::StrCat("unknown: ", why)};
  };
  auto experiments = connection.ListExperiments(kExperimentsListed);
  if (!experiments.ok()) return unknown(experiments.status().message());
  std::vector<std::string> asked;
  if (!extended.empty()) asked.push_back(extended);
  for (const v1::Experiment& experiment : *experiments) {
    if (asked.size() == kExperimentsAsked) break;
    if (experiment.name() == extended) continue;
    if (experiment.specification().evaluated_trial().empty()) asked.push_back(experiment.name());
  }
  std::vector<v1::Trial> earlier;
  for (const std::string& name : asked) {
    auto trials = connection.ListTrials(name, "state = SUCCEEDED");
    if (!trials.ok()) continue;
    earlier.insert(earlier.end(), trials->begin(), trials->end());
  }
  int based_on = 0;
  const double seconds = EstimateSeconds(grid, earlier, based_on);
  if (seconds < 0) {
    return unknown("no trials of the same tasks, networks and encodings were measured yet");
  }
  if (workers == 0) {
    const auto fleet = connection.ListWorkers();
    if (fleet.ok()) {
      for (const v1::Worker& worker : fleet->workers()) workers += worker.alive();
    }
  }
  const int in_parallel = std::min<int>(std::max(workers, 1), static_cast<int>(grid.trials.size()));
  const absl::Duration time = absl::Seconds(seconds / in_parallel);
  return {
      .time = time,
      .text = absl::StrCat(
          "about ", FormatClock(time), " with ",
          workers == 0 ? "one worker (none is alive now)" : Counted(workers, "worker"),
          ", by the measured times of ", Counted(based_on, "earlier trial"), " of the same kind")};
}

}  // namespace lengthwise::client
