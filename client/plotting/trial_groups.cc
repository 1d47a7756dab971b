#include "client/plotting/trial_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "client/plotting/display_names.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool IsRandomized(const v1::Component& encoding) {
  const auto found = encoding.parameters().find("randomized");
  return found != encoding.parameters().end() && found->second.bool_value();
}

// Gives out styles. Encodings of one name, one plain and one randomized, share a colour; further
// ones of the same kind get their own.
class Styles {
 public:
  // `context` tells experiments and networks apart.
  SeriesStyle Of(const std::string& context, const v1::Component& encoding) {
    const bool randomized = IsRandomized(encoding);
    std::vector<std::string>& alike =
        labels_[{context, encoding.name(), randomized ? "randomized" : ""}];
    const std::string label = Label(encoding);
    const auto found = std::find(alike.begin(), alike.end(), label);
    const auto variant = static_cast<int>(found - alike.begin());
    if (found == alike.end()) alike.push_back(label);
    const auto [color, is_new] = colors_.emplace(std::make_tuple(context, encoding.name(), variant),
                                                 static_cast<int>(colors_.size()));
    return {.color = color->second, .marker = color->second, .dashed = randomized};
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> labels_;
  std::map<std::tuple<std::string, std::string, int>, int> colors_;
};

// Mean over the unseen lengths, over all where none is.
double MeanLoss(const v1::Trial& trial, const v1::LengthAccuracies& measured) {
  const int32_t seen_up_to = trial.specification().evaluation().seen_up_to();
  double unseen = 0, all = 0;
  int unseen_count = 0;
  for (int i = 0; i < std::min(measured.lengths_size(), measured.losses_size()); ++i) {
    all += measured.losses(i);
    if (measured.lengths(i) <= seen_up_to) continue;
    unseen += measured.losses(i);
    ++unseen_count;
  }
  return unseen_count > 0 ? unseen / unseen_count : all / measured.losses_size();
}

}  // namespace

std::vector<TrialGroup> GroupTrials(const std::vector<PlotExperiment>& experiments) {
  std::set<std::string> networks;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      networks.insert(Label(trial.specification().network()));
    }
  }
  Styles styles;
  std::vector<TrialGroup> groups;
  std::map<std::tuple<const PlotExperiment*, std::string, std::string, std::string>, size_t> index;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      const v1::TrialSpecification& specification = trial.specification();
      const std::string network = Label(specification.network());
      const auto [found, is_new] =
          index.emplace(std::make_tuple(&experiment, Label(specification.task()), network,
                                        Label(specification.encoding())),
                        groups.size());
      if (is_new) {
        TrialGroup& group = groups.emplace_back();
        group.experiment = &experiment;
        group.task = &specification.task();
        group.encoding = &specification.encoding();
        group.name = absl::StrCat(experiments.size() > 1 ? experiment.name + ": " : "",
                                  networks.size() > 1 ? network + ", " : "",
                                  EncodingTitle(specification.encoding()));
        group.style =
            styles.Of(absl::StrCat(experiment.name, "/", network), specification.encoding());
      }
      std::vector<SeedGroup>& rates = groups[found->second].rates;
      auto rate = std::find_if(rates.begin(), rates.end(), [&](const SeedGroup& seeds) {
        return seeds.learning_rate == specification.learning_rate();
      });
      if (rate == rates.end()) {
        rate = rates.insert(rates.end(), {.learning_rate = specification.learning_rate()});
      }
      rate->trials.push_back(&trial);
    }
  }
  return groups;
}

std::vector<const v1::Component*> TasksOf(const std::vector<TrialGroup>& groups) {
  std::vector<const v1::Component*> tasks;
  std::set<std::string> labels;
  for (const TrialGroup& group : groups) {
    if (labels.insert(Label(*group.task)).second) tasks.push_back(group.task);
  }
  return tasks;
}

const SeedGroup* BestRate(const TrialGroup& group, const TrialScore& score) {
  const SeedGroup* best = nullptr;
  double highest = 0;
  for (const SeedGroup& seeds : group.rates) {
    double sum = 0;
    int count = 0;
    for (const v1::Trial* trial : seeds.trials) {
      const double value = score(*trial);
      if (std::isnan(value)) continue;
      sum += value;
      ++count;
    }
    if (count == 0) continue;
    if (best == nullptr || sum / count > highest) {
      best = &seeds;
      highest = sum / count;
    }
  }
  return best;
}

const v1::Trial* BestTrial(const TrialGroup& group, const TrialScore& score) {
  const v1::Trial* best = nullptr;
  double highest = 0;
  for (const SeedGroup& seeds : group.rates) {
    for (const v1::Trial* trial : seeds.trials) {
      const double value = score(*trial);
      if (std::isnan(value) || (best != nullptr && value <= highest)) continue;
      best = trial;
      highest = value;
    }
  }
  return best;
}

double UnseenAccuracy(const v1::Trial& trial, const v1::LengthAccuracies& accuracies) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < std::min(accuracies.lengths_size(), accuracies.accuracies_size()); ++i) {
    if (accuracies.lengths(i) <= trial.specification().evaluation().seen_up_to()) continue;
    sum += accuracies.accuracies(i);
    ++count;
  }
  return count > 0 ? sum / count : kNone;
}

std::map<std::string, const v1::LengthAccuracies*> FinalEvaluations(
    const PlotExperiment& experiment) {
  std::map<std::string, const v1::LengthAccuracies*> finals;
  for (const auto& evaluation : experiment.accuracies.evaluations()) {
    if (evaluation.accuracies().final()) finals[evaluation.trial()] = &evaluation.accuracies();
  }
  return finals;
}

double EvaluationScore(const v1::Trial& trial, const v1::LengthAccuracies& measured) {
  if (measured.accuracies().empty()) return kNone;
  if (ComparedByLoss(trial.specification().task())) return -MeanLoss(trial, measured);
  const double unseen = UnseenAccuracy(trial, measured);
  if (!std::isnan(unseen)) return unseen;
  double sum = 0;
  for (const double accuracy : measured.accuracies()) sum += accuracy;
  return sum / measured.accuracies_size();
}

TrialScore FinalScore(const PlotExperiment& experiment) {
  return [finals = FinalEvaluations(experiment)](const v1::Trial& trial) {
    const auto found = finals.find(trial.name());
    return found == finals.end() ? kNone : EvaluationScore(trial, *found->second);
  };
}

std::string ExperimentNames(const std::vector<PlotExperiment>& experiments) {
  std::string text;
  for (size_t i = 0; i < experiments.size(); ++i) {
    absl::StrAppend(&text,
                    i == 0                        ? ""
                    : i + 1 == experiments.size() ? " and "
                                                  : ", ",
                    experiments[i].name);
  }
  return text;
}

std::vector<std::pair<const TrialGroup*, const v1::Trial*>> BestTrials(
    const std::vector<TrialGroup>& groups, const std::function<bool(const v1::Trial&)>& wanted) {
  std::vector<std::pair<const TrialGroup*, const v1::Trial*>> chosen;
  for (const TrialGroup& group : groups) {
    const TrialScore score = FinalScore(*group.experiment);
    const v1::Trial* best = BestTrial(
        group, [&](const v1::Trial& trial) { return wanted(trial) ? score(trial) : kNone; });
    if (best != nullptr) chosen.emplace_back(&group, best);
  }
  return chosen;
}

}  // namespace lengthwise::client
