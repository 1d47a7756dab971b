#include "client/rendering/accuracy_summary.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/rendering/component_label.h"
#include "client/rendering/numbers.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Value MetricAt(const v1::LengthAccuracies& measured, const std::string& name, int index) {
  for (const auto& metric : measured.metrics()) {
    if (metric.name() == name && index < metric.values_size()) return metric.values(index);
  }
  return {};
}

std::string Capitalized(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text;
}

}  // namespace

std::string Caption(const AccuracySummary& summary) {
  const bool is_length = summary.axis == "length";
  const std::string seen =
      summary.seen_up_to == 0 ? "none of them seen in training"
      : is_length             ? absl::StrCat("trained on lengths up to ", summary.seen_up_to)
                  : absl::StrCat("trained on up to ", summary.seen_up_to, " ", summary.axis);
  return absl::StrCat(Capitalized(summary.accuracy_title), " by ", summary.axis_title,
                      ", per cent (", FormatCount(summary.sequences), " sequences per ",
                      is_length ? summary.axis : summary.axis_title, "; ", seen, ")");
}

AccuracySummary Summarize(const v1::ExperimentSpecification& specification,
                          const v1::SummarizeExperimentResponse& summary) {
  AccuracySummary result;
  // All tasks of a specification are of one kind.
  const tasks::TaskEntry* task =
      specification.tasks().empty() ? nullptr : tasks::FindTask(specification.tasks(0).name());
  if (task != nullptr) {
    result.axis = task->axis;
    result.axis_title = task->axis_title;
    result.accuracy_title = task->accuracy_title;
  }
  result.seen_up_to = specification.evaluation().seen_up_to();
  result.sequences = specification.evaluation().sequences();
  const auto mean_of = [](const v1::SummarizeExperimentResponse::Statistic& statistic) {
    return statistic.trials() > 0 ? statistic.mean() : kNone;
  };
  std::set<int32_t> lengths;
  for (const auto& cell : summary.cells()) {
    const v1::TrialCounts& trials = cell.trials();
    result.missing_trials +=
        trials.queued() + trials.running() + trials.failed() + trials.cancelled();
    if (trials.succeeded() == 0) continue;
    AccuracyRow row{.task = cell.task(),
                    .network = cell.network(),
                    .encoding = cell.encoding(),
                    .learning_rate = cell.learning_rate(),
                    .trials = trials.succeeded(),
                    .seen = mean_of(cell.seen_accuracy()),
                    .unseen = mean_of(cell.unseen_accuracy()),
                    .unseen_deviation = cell.unseen_accuracy().trials() < 2
                                            ? kNone
                                            : cell.unseen_accuracy().deviation()};
    for (int i = 0; i < std::min(cell.lengths_size(), cell.mean_accuracies_size()); ++i) {
      lengths.insert(cell.lengths(i));
      row.accuracies[cell.lengths(i)] = cell.mean_accuracies(i);
    }
    result.rows.push_back(std::move(row));
  }
  result.lengths.assign(lengths.begin(), lengths.end());
  return result;
}

Records AccuracyRecords(const std::vector<v1::Trial>& trials,
                        const v1::QueryLengthAccuraciesResponse& accuracies) {
  Records records;
  records.columns = {"trial",       "task",      "network", "encoding", "learning_rate",
                     "weight_seed", "data_seed", "step",    "final",    "length",
                     "seen",        "accuracy",  "loss",    "sequences"};
  std::set<std::string> metrics;
  for (const auto& evaluation : accuracies.evaluations()) {
    for (const auto& metric : evaluation.accuracies().metrics()) metrics.insert(metric.name());
  }
  records.columns.insert(records.columns.end(), metrics.begin(), metrics.end());
  std::map<std::string, const v1::Trial*> by_name;
  for (const v1::Trial& trial : trials) by_name[trial.name()] = &trial;
  for (const auto& evaluation : accuracies.evaluations()) {
    const auto found = by_name.find(evaluation.trial());
    if (found == by_name.end()) continue;
    const v1::TrialSpecification& specification = found->second->specification();
    const v1::LengthAccuracies& measured = evaluation.accuracies();
    for (int i = 0; i < measured.lengths_size(); ++i) {
      records.rows.push_back(
          {evaluation.trial(), Label(specification.task()), Label(specification.network()),
           Label(specification.encoding()), specification.learning_rate(),
           static_cast<int64_t>(specification.weight_seed()),
           static_cast<int64_t>(specification.data_seed()), evaluation.step(), measured.final(),
           int64_t{measured.lengths(i)},
           measured.lengths(i) <= specification.evaluation().seen_up_to(),
           i < measured.accuracies_size() ? Value(measured.accuracies(i)) : Value(),
           i < measured.losses_size() ? Value(measured.losses(i)) : Value(),
           int64_t{measured.sequences()}});
      for (const std::string& metric : metrics) {
        records.rows.back().push_back(MetricAt(measured, metric, i));
      }
    }
  }
  return records;
}

}  // namespace lengthwise::client
