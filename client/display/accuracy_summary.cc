#include "client/display/accuracy_summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "catalogue/entry.h"
#include "client/display/numbers.h"
#include "client/display/records.h"
#include "client/display/terminal.h"
#include "proto/experiment_service.pb.h"
#include "proto/length_accuracies.h"
#include "tasks/catalogue.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"
#include "tasks/examples/line.h"

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

// Returns true if training ended at seen_up_to and showed all evaluated lengths that count as seen,
// as far as is known.
bool AllTrained(const AccuracySummary& summary) {
  const std::set<int32_t>& trained = summary.trained;
  if (trained.empty()) return true;
  return *trained.rbegin() == summary.seen_up_to &&
         absl::c_all_of(summary.lengths, [&](int32_t length) {
           return length > summary.seen_up_to || summary.trained_by_all.contains(length);
         });
}

// "lengths 10 to 20", "length 8", "2 to 5 digits", "some of the lengths 1 to 9", "different lengths
// by task".
std::string TrainedLengths(const AccuracySummary& summary, bool is_one) {
  // Gaps between evaluated lengths, and differences elsewhere, do not matter.
  const bool all_trained = AllTrained(summary);
  if (!all_trained && summary.trained != summary.trained_by_all) {
    return is_one ? absl::StrCat("different ", summary.axis, "s by task")
                  : absl::StrCat("different numbers of ", summary.axis, " by task");
  }
  const int32_t first = *summary.trained.begin();
  const int32_t last = *summary.trained.rbegin();
  const std::string numbers =
      first == last ? absl::StrCat(last) : absl::StrCat(first, " to ", last);
  const bool has_gaps =
      !all_trained && static_cast<int32_t>(summary.trained.size()) <= last - first;
  if (!is_one) return absl::StrCat(has_gaps ? "some of " : "", numbers, " ", summary.axis);
  return absl::StrCat(has_gaps ? "some of the " : "", summary.axis, first == last ? " " : "s ",
                      numbers);
}

// "trained on lengths up to 20", "trained on up to 5 digits", "trained on lengths 10 to 20",
// "trained on lengths 1 to 500; up to 40 count as seen".
std::string WhatIsSeen(const AccuracySummary& summary) {
  const int32_t most = summary.seen_up_to;
  if (most == 0 && summary.trained.empty()) return "none of them seen in training";
  const bool is_one = summary.axis == "length" || summary.axis == "scale";
  if (!AllTrained(summary)) {
    return absl::StrCat("trained on ", TrainedLengths(summary, is_one), "; up to ", most,
                        " count as seen");
  }
  if (!summary.trained.empty() && *summary.trained.begin() > 1) {
    return absl::StrCat("trained on ", TrainedLengths(summary, is_one));
  }
  if (!is_one) return absl::StrCat("trained on up to ", most, " ", summary.axis);
  if (most == 1) return absl::StrCat("trained on ", summary.axis, " 1");
  return absl::StrCat("trained on ", summary.axis, "s up to ", most);
}

// Sets the number of sequences that were evaluated at the summary's lengths. A worker evaluates all
// examples of a length if a test file has fewer than requested.
void SetSequences(const v1::ExperimentSpecification& specification, AccuracySummary& summary) {
  const int64_t requested = specification.evaluation().sequences();
  std::set<int64_t> counts;
  for (const v1::Component& task : specification.tasks()) {
    const auto contents = task.parameters().find("contents");
    if (!tasks::examples::IsExamples(task.name()) || contents == task.parameters().end()) {
      counts.insert(requested);
      continue;
    }
    const auto files = tasks::examples::ParseContents(contents->second.string_value());
    if (!files.ok()) continue;
    for (const auto& [length, examples] : files->test.lengths) {
      if (std::binary_search(summary.lengths.begin(), summary.lengths.end(), length)) {
        counts.insert(std::min(requested, examples));
      }
    }
  }
  summary.sequences = static_cast<int32_t>(counts.empty() ? requested : *counts.rbegin());
  summary.fewer_sequences = counts.size() > 1;
}

// Sets the lengths in training: those of training.lengths of which a task's file has examples.
void SetTrained(const v1::ExperimentSpecification& specification, AccuracySummary& summary) {
  const v1::LengthRange& range = specification.training().lengths();
  // No server accepts a longer one, so this is no specification of a server's.
  if (range.max() > tasks::examples::kMostLength) return;
  std::set<int32_t> all;
  for (int32_t length = std::max(1, range.min()); length <= range.max(); ++length) {
    all.insert(all.end(), length);
  }
  summary.trained_by_all = all;
  for (const v1::Component& task : specification.tasks()) {
    std::set<int32_t> trained = all;
    const auto contents = task.parameters().find("contents");
    if (tasks::examples::IsExamples(task.name()) && contents != task.parameters().end()) {
      const auto files = tasks::examples::ParseContents(contents->second.string_value());
      if (!files.ok()) continue;
      std::erase_if(trained,
                    [&](int32_t length) { return !files->training.lengths.contains(length); });
    }
    summary.trained.insert(trained.begin(), trained.end());
    std::erase_if(summary.trained_by_all,
                  [&](int32_t length) { return !trained.contains(length); });
  }
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

std::string Label(const v1::Component& component) {
  return component.label().empty() ? component.name() : component.label();
}

std::pair<std::string, std::string> SideHeadings(const AccuracySummary& summary) {
  const bool went_beyond =
      !summary.trained.empty() && *summary.trained.rbegin() > summary.seen_up_to;
  return {
      AllTrained(summary) ? "seen in training" : absl::StrCat("up to ", summary.seen_up_to),
      went_beyond ? absl::StrCat("above ", summary.seen_up_to) : "not seen",
  };
}

std::string Caption(const AccuracySummary& summary) {
  const bool deviations = absl::c_any_of(summary.rows, [](const AccuracyRow& row) {
    return !std::isnan(row.unseen_deviation) || !std::isnan(row.training_deviation);
  });
  const bool is_one = summary.axis == "length" || summary.axis == "scale";
  return absl::StrCat(Capitalized(summary.score_title), " by ", summary.axis_title,
                      summary.is_loss ? ", median over trials (" : ", per cent (",
                      summary.fewer_sequences ? "up to " : "",
                      Counted(summary.sequences, "sequence"), " per ",
                      is_one ? summary.axis : summary.axis_title, "; ", WhatIsSeen(summary),
                      deviations ? "; ±: standard deviation over trials)" : ")");
}

std::string RandomGuess(const v1::ExperimentSpecification& specification) {
  const auto text = [](const google::protobuf::Value& value) {
    if (value.has_number_value()) return catalogue::FormatValue(value.number_value());
    return value.has_bool_value() ? catalogue::FormatValue(value.bool_value())
                                  : value.string_value();
  };
  std::map<double, std::vector<std::string>, std::greater<>> tasks;  // by their chance
  for (const v1::Component& task : specification.tasks()) {
    const tasks::TaskEntry* entry = tasks::FindTask(task.name());
    if (entry == nullptr || entry->compared_by_loss || !(entry->random_accuracy > 0)) continue;
    // It is that of the default parameters.
    const bool is_known = absl::c_all_of(entry->parameters, [&](const auto& parameter) {
      const auto given = task.parameters().find(parameter.name);
      return given == task.parameters().end() ||
             text(given->second) == catalogue::FormatValue(parameter.default_value);
    });
    if (is_known) tasks[entry->random_accuracy].push_back(Label(task));
  }
  if (tasks.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [chance, labels] : tasks) {
    parts.push_back(absl::StrFormat("%.3g %%", 100 * chance));
    if (static_cast<int>(labels.size()) < specification.tasks_size()) {
      absl::StrAppend(&parts.back(), " (", absl::StrJoin(labels, ", "), ")");
    }
  }
  return absl::StrCat("Random guess: ", absl::StrJoin(parts, ", "), ".");
}

std::string FormatScore(const AccuracySummary& summary, double score) {
  if (!summary.is_loss) return FormatPercent(score);
  return std::isnan(score) ? "–" : absl::StrFormat("%.3g", score);
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
    result.is_loss = task->compared_by_loss;
    result.score_title = result.is_loss ? task->loss_title : task->accuracy_title;
  }
  result.seen_up_to = specification.evaluation().seen_up_to();
  if (task == nullptr || !task->seen_up_to.has_value()) SetTrained(specification, result);
  const auto mean_of = [](const v1::SummarizeExperimentResponse::Statistic& statistic) {
    return statistic.trials() > 0 ? statistic.mean() : kNone;
  };
  const auto deviation_of = [](const v1::SummarizeExperimentResponse::Statistic& statistic) {
    return statistic.trials() < 2 ? kNone : statistic.deviation();
  };
  const auto median_of = [](const v1::SummarizeExperimentResponse::Quantiles& quantiles) {
    return quantiles.trials() > 0 ? quantiles.median() : kNone;
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
                    .unseen_deviation = deviation_of(cell.unseen_accuracy()),
                    .selection = mean_of(cell.selection()),
                    .training = mean_of(cell.training_accuracy()),
                    .training_deviation = deviation_of(cell.training_accuracy())};
    const int scores = result.is_loss ? cell.losses_size() : cell.mean_accuracies_size();
    for (int i = 0; i < std::min(cell.lengths_size(), scores); ++i) {
      lengths.insert(cell.lengths(i));
      row.scores[cell.lengths(i)] =
          result.is_loss ? median_of(cell.losses(i)) : cell.mean_accuracies(i);
    }
    if (result.is_loss) {
      row.seen = median_of(cell.seen_loss());
      row.unseen = median_of(cell.unseen_loss());
      row.unseen_deviation = kNone;
    }
    result.rows.push_back(std::move(row));
  }
  result.lengths.assign(lengths.begin(), lengths.end());
  SetSequences(specification, result);
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
                                      Label(specification.task()),
                                      Label(specification.network()),
                                      Label(specification.encoding()),
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
