#include "client/commands/estimate.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/connection/private_service.h"
#include "client/display/numbers.h"
#include "client/display/terminal.h"
#include "platform/status_macros.h"
#include "tasks/catalogue.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

// The newest experiments that trained. Among the listed ones many may be evaluations, which did
// not.
constexpr size_t kExperimentsAsked = 10;
constexpr size_t kExperimentsListed = 200;
constexpr size_t kTrialsShown = 10;

// Of a measured trial.
constexpr int kMeasuredSequences = 16;
constexpr double kMostMeasuredSeconds = 2;
constexpr double kLeastMeasuredSeconds = 0.5;
// Of all measured trials, if there are not too many of them.
constexpr double kMeasuringSeconds = 20;

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
                      training.precision(), "#", training.packing().SerializeAsString());
}

TimeEstimate Unknown(absl::string_view why) { return {.text = absl::StrCat("unknown: ", why)}; }

// Returns a measure of all evaluations of a trial: the tokens of their sequences.
double EvaluationWork(const v1::TrialSpecification& specification) {
  const v1::Evaluation& evaluation = specification.evaluation();
  const auto sum = [](const auto& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), 0.0);
  };
  double work =
      sum(evaluation.lengths()) * evaluation.sequences() * (1 + evaluation.embedding_noise_size());
  work += sum(evaluation.validation().lengths()) * evaluation.validation().sequences();
  if (evaluation.every_steps() > 0) {
    work += static_cast<double>(specification.training().steps() / evaluation.every_steps()) *
            sum(evaluation.interval_lengths()) * evaluation.interval_sequences();
  }
  return work;
}

// Returns the specification with few of its seeds and one learning rate, short training and short
// evaluations. `trials` is the number of its trials that shall run at least, if it has as many.
v1::ExperimentSpecification Shortened(const v1::ExperimentSpecification& whole, int trials,
                                      double seconds) {
  v1::ExperimentSpecification shortened = whole;
  const int kinds = whole.tasks_size() * whole.networks_size() * whole.encodings_size();
  const int seeds = (trials + kinds - 1) / kinds;
  const auto keep = [](auto& values, int count) {
    if (values.size() > count) values.Truncate(count);
  };
  keep(*shortened.mutable_learning_rates(), 1);
  keep(*shortened.mutable_seeds(), seeds);
  keep(*shortened.mutable_weight_seeds(), seeds);
  keep(*shortened.mutable_data_seeds(), 1);
  v1::Training& training = *shortened.mutable_training();
  const double limit = training.stop_after_seconds();
  training.set_stop_after_seconds(limit > 0 ? std::min(limit, seconds) : seconds);
  training.set_stop_at_accuracy(0);
  v1::Evaluation& evaluation = *shortened.mutable_evaluation();
  evaluation.set_every_steps(0);
  // A file or a set of puzzles may have fewer sequences than asked for, so they are all evaluated.
  const bool draws =
      std::none_of(whole.tasks().begin(), whole.tasks().end(), [](const v1::Component& task) {
        const tasks::TaskEntry* entry = tasks::FindTask(task.name());
        return entry == nullptr || entry->kind == tasks::TaskKind::kPuzzle ||
               tasks::examples::IsExamples(entry->name);
      });
  if (draws) evaluation.set_sequences(std::min(evaluation.sequences(), kMeasuredSequences));
  return shortened;
}

}  // namespace

std::vector<double> EstimateSeconds(const specification::Grid& grid,
                                    const std::vector<v1::Trial>& measured, int& based_on) {
  struct Cost {
    double step_seconds = 0;
    // Of each unit of EvaluationWork, or of each evaluation if its work is unknown.
    double evaluation_seconds = 0;
    int count = 0;
    bool is_used = false;
  };
  const auto work_of = [](const v1::TrialSpecification& specification) {
    const double work = EvaluationWork(specification);
    return work > 0 ? work : 1;
  };
  std::map<std::string, Cost> costs;
  for (const v1::Trial& trial : measured) {
    const v1::Outcome& outcome = trial.outcome();
    const int64_t steps = outcome.training_steps() > 0 ? outcome.training_steps()
                                                       : trial.specification().training().steps();
    // An evaluation has the steps of the trial that it evaluates, but did not train them.
    if (!trial.specification().evaluated_trial().empty()) continue;
    // A resumed trial's seconds cover its last attempt only.
    if (trial.state() != v1::SUCCEEDED || trial.attempt() != 1 || steps < 1) continue;
    Cost& cost = costs[CostKey(trial.specification())];
    cost.step_seconds += outcome.training_seconds() / static_cast<double>(steps);
    cost.evaluation_seconds += outcome.evaluation_seconds() / work_of(trial.specification());
    ++cost.count;
  }
  std::vector<double> seconds;
  based_on = 0;
  for (const specification::GridTrial& trial : grid.trials) {
    const v1::TrialSpecification& planned = trial.pack->specification;
    const auto found = costs.find(CostKey(planned));
    if (found == costs.end()) return {};
    Cost& cost = found->second;
    double training =
        cost.step_seconds / cost.count * static_cast<double>(planned.training().steps());
    const double limit = planned.training().stop_after_seconds();
    if (limit > 0) training = std::min(training, limit);
    seconds.push_back(training + cost.evaluation_seconds / cost.count * work_of(planned));
    if (!std::exchange(cost.is_used, true)) based_on += cost.count;
  }
  return seconds;
}

double TimeOfAll(const std::vector<double>& seconds, int workers) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < workers; ++i) free_at.push(0);
  double last = 0;
  for (const double one : seconds) {
    const double end = free_at.top() + one;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

TimeEstimate EstimateTime(Connection& connection, const specification::Grid& grid, int workers,
                          const std::string& extended) {
  auto experiments = connection.ListExperiments(kExperimentsListed);
  if (!experiments.ok()) return Unknown(experiments.status().message());
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
  std::vector<double> seconds = EstimateSeconds(grid, earlier, based_on);
  if (seconds.empty()) {
    return Unknown("no trials of the same tasks, networks and encodings were measured yet");
  }
  if (workers == 0) {
    const auto fleet = connection.Call<v1::ListWorkersResponse>(v1::ListWorkersRequest());
    if (fleet.ok()) {
      for (const v1::Worker& worker : fleet->workers()) workers += worker.alive();
    }
  }
  const absl::Duration time = absl::Seconds(TimeOfAll(seconds, std::max(workers, 1)));
  return {
      .time = time,
      .seconds = std::move(seconds),
      .text = absl::StrCat(
          "about ", FormatClock(time), " with ",
          workers == 0 ? "one worker (none is alive now)" : Counted(workers, "worker"),
          ", by the measured times of ", Counted(based_on, "earlier trial"), " of the same kind")};
}

absl::StatusOr<TimeEstimate> MeasureTime(Program& program, const ResolvedFile& read,
                                         const LocalWorkers& workers) {
  const v1::ExperimentSpecification& whole = read.grid.specification;
  const int parallel = WorkerCount(workers, read.grid.trials.size());
  const int kinds = whole.tasks_size() * whole.networks_size() * whole.encodings_size();
  v1::CreateExperimentRequest request;
  *request.mutable_specification() =
      Shortened(whole, parallel,
                std::clamp(kMeasuringSeconds * parallel / std::max(kinds, parallel),
                           kLeastMeasuredSeconds, kMostMeasuredSeconds));
  if (program.is_terminal) {
    program.err() << "Measuring a few steps of each kind of trial on this machine ..." << std::endl;
  }
  std::optional<InterruptGuard> interrupts(std::in_place);
  std::error_code error;
  std::string directory =
      (std::filesystem::temp_directory_path(error) / "lengthwise-measured-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    return Unknown(absl::StrCat("cannot create ", directory, "; set TMPDIR to a directory"));
  }
  // Deletes the directory after the service has stopped.
  const absl::Cleanup deleted = [&directory, &error] {
    std::filesystem::remove_all(directory, error);
  };
  auto service = PrivateService::Open({.data_dir = directory});
  if (!service.ok()) return Unknown(service.status().message());
  Connection connection((*service)->address());
  ASSIGN_OR_RETURN(const auto created, CreateExperiment(connection, request, read.examples.files));
  const std::string& name = created.experiment().name();
  const auto ended = TrainHere(program, **service, connection,
                               {.experiment = name,
                                .workers = std::min(parallel, created.trial_count()),
                                .options = workers,
                                .quiet = true,
                                .resumable = false},
                               interrupts);
  if (!ended.ok()) return Unknown(ended.status().message());
  if (*ended == kInterrupted) return absl::CancelledError("interrupted; nothing is left of it");
  ASSIGN_OR_RETURN(const auto trials, connection.ListTrials(name, ""));
  int64_t steps = 0;
  bool on_gpu = false;
  for (const v1::Trial& trial : trials) {
    if (trial.state() != v1::SUCCEEDED) {
      return Unknown(absl::StrCat(ShortName(trial.name()).substr(ShortName(name).size() + 1),
                                  " failed: ", trial.reason()));
    }
    steps += trial.outcome().training_steps();
    on_gpu |= trial.outcome().provenance().device() != "cpu";
  }
  int based_on = 0;
  std::vector<double> seconds = EstimateSeconds(read.grid, trials, based_on);
  if (seconds.empty()) return Unknown("not every kind of trial was measured");
  const absl::Duration time = absl::Seconds(TimeOfAll(seconds, parallel));
  return TimeEstimate{
      .time = time,
      .seconds = std::move(seconds),
      .text = absl::StrCat(
          "about ", FormatClock(time), " on this machine with ", Counted(parallel, "worker"),
          ", by ", Counted(steps, "measured step"), " of ", Counted(kinds, "kind"), " of trials",
          on_gpu ? "; less if the GPU trains several trials at once, which was not measured" : "")};
}

void PrintDryRun(Program& program, const specification::Grid& grid, const TimeEstimate& estimate) {
  if (!program.output_is_table()) {
    Records records{.columns = {"trial", "pack", "steps", "estimated_seconds"}};
    for (size_t i = 0; i < grid.trials.size(); ++i) {
      const specification::GridPack& pack = *grid.trials[i].pack;
      records.rows.push_back(
          {grid.trials[i].id, pack.key, int64_t{pack.specification.training().steps()},
           OrNothing(estimate.seconds.empty() ? std::nullopt
                                              : std::optional(estimate.seconds[i]))});
    }
    program.Write(records);
    return;
  }
  int64_t steps = 0;
  for (const specification::GridTrial& trial : grid.trials) {
    steps += trial.pack->specification.training().steps();
  }
  std::ostream& out = program.out();
  for (size_t i = 0; i < std::min(kTrialsShown, grid.trials.size()); ++i) {
    out << "  " << grid.trials[i].id << "\n";
  }
  if (grid.trials.size() > kTrialsShown) {
    out << "  ... and " << FormatCount(static_cast<int64_t>(grid.trials.size() - kTrialsShown))
        << " more\n";
  }
  out << "Steps: " << FormatCount(steps) << " in all\n"
      << program.Wrapped("Estimated time: " + estimate.text) << "\n";
}

}  // namespace lengthwise::client
