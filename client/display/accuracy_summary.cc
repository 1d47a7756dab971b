#include "client/display/accuracy_summary.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/display/numbers.h"
#include "client/display/records.h"
#include "proto/component_label.h"
#include "proto/experiment_service.pb.h"
#include "proto/length_accuracies.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

// Returns the names of all measures besides accuracy and loss that any evaluation has.
std::set<std::string> MetricNames(const v1::QueryLengthAccuraciesResponse& evaluations) {
  std::set<std::string> names;
  for (const auto& evaluation : evaluations.evaluations()) {
    for (const auto& metric : evaluation.accuracies().metrics()) names.insert(metric.name());
  }
  return names;
}

// Returns the metric at the index-th length; no value if the evaluation does not have it.
Value MetricValue(const v1::LengthAccuracies& measured, const std::string& name, int index) {
  for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
    if (metric.name() == name && index < metric.values_size()) return metric.values(index);
  }
  return {};
}

// Errors by trial and length. A later evaluation replaces an earlier one.
using ErrorsByLength = std::map<std::pair<std::string, int32_t>, const v1::AnswerErrors*>;

ErrorsByLength ErrorsOf(const std::vector<v1::Event>& analyses) {
  ErrorsByLength errors;
  for (const v1::Event& event : analyses) {
    if (!event.has_answer_errors()) continue;
    errors[{event.trial(), event.answer_errors().length()}] = &event.answer_errors();
  }
  return errors;
}

// Adds empty values if `errors` is null.
void AddErrors(const v1::AnswerErrors* errors, std::vector<Value>& row) {
  if (errors == nullptr) {
    row.resize(row.size() + 4);
    return;
  }
  for (const auto& counts : {errors->wrong_by_place(), errors->answers_by_wrong_digits()}) {
    row.emplace_back(std::vector<int64_t>(counts.begin(), counts.end()));
  }
  row.emplace_back(int64_t{errors->first_wrong_with_carry()});
  row.emplace_back(int64_t{errors->first_wrong_without_carry()});
}

}  // namespace

AccuracySummary Summarize(const v1::SummarizeExperimentResponse& summary) {
  AccuracySummary result{.heading = summary.heading()};
  std::set<int32_t> lengths;
  for (const AccuracyRow& cell : summary.cells()) {
    const int32_t succeeded = cell.trials().succeeded();
    result.missing_trials += static_cast<int>(AllTrials(cell.trials())) - succeeded;
    if (succeeded == 0) continue;
    lengths.insert(cell.lengths().begin(), cell.lengths().end());
    result.rows.push_back(cell);
  }
  result.lengths.assign(lengths.begin(), lengths.end());
  return result;
}

void WriteAccuracies(const std::vector<v1::Trial>& trials,
                     const v1::QueryLengthAccuraciesResponse& accuracies,
                     const std::vector<v1::Event>& analyses, RecordFormat format,
                     std::ostream& out) {
  std::vector<std::string> columns = {
      "trial", "task",  "network", "encoding", "learning_rate", "weight_seed", "data_seed",
      "step",  "final", "length",  "seen",     "accuracy",      "loss",        "sequences"};
  const std::set<std::string> metrics = MetricNames(accuracies);
  bool training = false;
  for (const auto& evaluation : accuracies.evaluations()) {
    training = training || evaluation.accuracies().has_training_accuracy();
  }
  columns.insert(columns.end(), metrics.begin(), metrics.end());
  if (training) columns.push_back("training_accuracy");
  const ErrorsByLength errors = ErrorsOf(analyses);
  if (!errors.empty()) {
    columns.insert(columns.end(), {"wrong_by_place", "answers_by_wrong_digits",
                                   "first_wrong_with_carry", "first_wrong_without_carry"});
  }
  RecordWriter writer(format, std::move(columns), out);
  std::map<std::string, const v1::Trial*> by_name;
  for (const v1::Trial& trial : trials) by_name[trial.name()] = &trial;
  for (const auto& evaluation : accuracies.evaluations()) {
    const auto found = by_name.find(evaluation.trial());
    if (found == by_name.end()) continue;
    const v1::TrialSpecification& specification = found->second->specification();
    const v1::LengthAccuracies& measured = evaluation.accuracies();
    // The same in all rows of an evaluation.
    const std::vector<Value> start = {evaluation.trial(),
                                      LabelOf(specification.task()),
                                      LabelOf(specification.network()),
                                      LabelOf(specification.encoding()),
                                      specification.learning_rate(),
                                      uint64_t{specification.weight_seed()},
                                      uint64_t{specification.data_seed()},
                                      evaluation.step(),
                                      measured.final()};
    std::vector<Value> row = start;
    for (int i = 0; i < measured.lengths_size(); ++i) {
      row.resize(start.size());
      row.emplace_back(int64_t{measured.lengths(i)});
      row.emplace_back(measured.lengths(i) <= specification.evaluation().seen_up_to());
      row.push_back(OrNothing(i < measured.accuracies_size()
                                  ? std::optional<double>(measured.accuracies(i))
                                  : std::nullopt));
      row.push_back(OrNothing(i < measured.losses_size() ? std::optional<double>(measured.losses(i))
                                                         : std::nullopt));
      row.emplace_back(int64_t{SequencesAt(measured, i)});
      for (const std::string& metric : metrics) row.push_back(MetricValue(measured, metric, i));
      if (training) {
        // Records have no value for NaN.
        row.emplace_back(measured.has_training_accuracy() ? measured.training_accuracy() : kNone);
      }
      if (!errors.empty()) {
        const auto of_length = errors.find({evaluation.trial(), measured.lengths(i)});
        AddErrors(measured.final() && of_length != errors.end() ? of_length->second : nullptr, row);
      }
      writer.Write(row);
    }
  }
  writer.Finish();
}

}  // namespace lengthwise::client
