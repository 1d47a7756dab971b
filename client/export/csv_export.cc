#include "client/export/csv_export.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/export/trial_history.h"
#include "client/plotting/display_names.h"
#include "client/rendering/metrics.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

const std::vector<ExportColumn>& LossColumns() {
  static const auto& columns = *new std::vector<ExportColumn>{
      {"step", "training steps done"},
      {"loss",
       "mean over the step's batch, before its update: soft-max cross-entropy, nats; of a "
       "regression the mean squared error"},
      {"accuracy",
       "on the step's batch, 0 to 1: share of output tokens that are right; of a regression of "
       "outputs that are close to their targets"},
      {"gradient_norm", "norm of the gradient before clipping"},
      {"length", "input length of the step's batch"},
      {"time", "when the point was sent, UTC"},
  };
  return columns;
}

const std::vector<ExportColumn>& AccuracyColumns() {
  static const auto& columns = *new std::vector<ExportColumn>{
      {"step", "training steps done"},
      {"final", "true: the full evaluation after training; false: one during it"},
      {"length", "input length, or what the task has in its place: scale, vectors, digits"},
      {"seen", "true: training had inputs of this length"},
      {"accuracy",
       "over the length's sequences, 0 to 1: what the task's catalogue entry says, such as token "
       "accuracy, or exact match of text; of a regression the share of sequences whose outputs are "
       "all close to their targets"},
      {"loss",
       "mean over them: soft-max cross-entropy, nats; of a regression the mean squared error"},
      {"sequences", "sequences evaluated of this length"},
      {"training_seconds", "wall-clock seconds of training up to this step"},
  };
  return columns;
}

// Other measures that evaluations of the subject have.
absl::StatusOr<std::set<std::string>> MetricsOf(Connection& connection,
                                                const ExportSubject& subject) {
  const auto measured = connection.QueryLengthAccuracies(
      subject.whole_experiment || subject.trials.empty() ? subject.experiment.name()
                                                         : subject.trials.front().name(),
      /*include_intervals=*/true);
  if (!measured.ok()) return measured.status();
  return MetricNames(*measured);
}

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

Value TimeValue(bool is_set, const google::protobuf::Timestamp& time) {
  if (!is_set) return Value();
  return UtcText(absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()));
}

// Text where a signed number does not hold it.
Value SeedValue(uint64_t seed) {
  if (seed > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return absl::StrCat(seed);
  return static_cast<int64_t>(seed);
}

std::string Rows(Records records) {
  std::ostringstream out;
  WriteCsvRows(records, out);
  return out.str();
}

nlohmann::ordered_json Meanings(const std::vector<ExportColumn>& columns) {
  nlohmann::ordered_json meanings = nlohmann::ordered_json::object();
  for (const ExportColumn& column : TrialKeyColumns()) meanings[column.name] = column.meaning;
  for (const ExportColumn& column : columns) meanings[column.name] = column.meaning;
  return meanings;
}

}  // namespace

const std::vector<ExportColumn>& TrialKeyColumns() {
  static const auto& columns = *new std::vector<ExportColumn>{
      {"trial", "the trial's name, unique on its server"},
      {"task", "label of the task"},
      {"network", "label of the network"},
      {"encoding", "label of the positional encoding"},
      {"learning_rate", "learning rate"},
      {"weight_seed", "seed of the initial weights"},
      {"data_seed", "seed of the training samples"},
  };
  return columns;
}

std::vector<Value> TrialKey(const v1::Trial& trial) {
  const v1::TrialSpecification& specification = trial.specification();
  return {trial.name(),
          Label(specification.task()),
          Label(specification.network()),
          Label(specification.encoding()),
          specification.learning_rate(),
          SeedValue(specification.weight_seed()),
          SeedValue(specification.data_seed())};
}

const std::vector<ExportColumn>& TrialColumns() {
  static const auto& columns = *new std::vector<ExportColumn>{
      {"index", "place in the grid, from 0"},
      {"state", "QUEUED, RUNNING, SUCCEEDED, FAILED or CANCELLED"},
      {"reason", "why it is in this state"},
      {"attempts", "leases so far"},
      {"worker", "the last worker"},
      {"steps", "training steps of the specification"},
      {"training_steps", "steps that were made; fewer where a target stopped training"},
      {"stop_reason", "why training stopped before the last step"},
      {"seen_up_to", "the longest input length that training had"},
      {"seen_accuracy", "mean final accuracy over lengths up to seen_up_to, 0 to 1"},
      {"unseen_accuracy", "mean final accuracy over lengths above seen_up_to, 0 to 1"},
      {"training_seconds", "wall-clock seconds of training, over all attempts"},
      {"evaluation_seconds", "wall-clock seconds of the last evaluation"},
      {"device", "cpu, or the GPU's name"},
      {"program_version", "version of the worker"},
      {"create_time", "when it was submitted, UTC"},
      {"start_time", "when it was first leased, UTC"},
      {"end_time", "when it ended, UTC"},
  };
  return columns;
}

std::vector<Value> TrialRow(const v1::Trial& trial) {
  const v1::TrialSpecification& specification = trial.specification();
  std::vector<Value> row = {int64_t{trial.index()}, v1::TrialState_Name(trial.state()),
                            trial.reason(),         int64_t{trial.attempt()},
                            trial.worker(),         specification.training().steps()};
  if (trial.has_outcome()) {
    const v1::Outcome& outcome = trial.outcome();
    const auto score = [](double accuracy) { return accuracy < 0 ? Value() : Value(accuracy); };
    row.insert(row.end(), {outcome.training_steps(), outcome.stop_reason(),
                           int64_t{specification.evaluation().seen_up_to()},
                           score(outcome.seen_accuracy()), score(outcome.unseen_accuracy()),
                           outcome.training_seconds(), outcome.evaluation_seconds(),
                           outcome.provenance().device(), outcome.provenance().program_version()});
  } else {
    row.insert(row.end(), {Value(), Value(), int64_t{specification.evaluation().seen_up_to()},
                           Value(), Value(), Value(), Value(), Value(), Value()});
  }
  row.push_back(TimeValue(trial.has_create_time(), trial.create_time()));
  row.push_back(TimeValue(trial.has_start_time(), trial.start_time()));
  row.push_back(TimeValue(trial.has_end_time(), trial.end_time()));
  return row;
}

absl::StatusOr<std::unique_ptr<OutputFile>> CsvExporter::OpenTable(
    const std::string& name, const std::vector<ExportColumn>& columns) {
  auto file = output_.Open(name);
  if (!file.ok()) return file.status();
  Records header;
  for (const ExportColumn& column : TrialKeyColumns()) header.columns.push_back(column.name);
  for (const ExportColumn& column : columns) header.columns.push_back(column.name);
  std::ostringstream out;
  WriteCsv(header, out);
  if (absl::Status status = (*file)->Append(out.str()); !status.ok()) return status;
  return file;
}

absl::Status CsvExporter::Begin() {
  auto trials = OpenTable("trials.csv", TrialColumns());
  if (!trials.ok()) return trials.status();
  auto losses = OpenTable("loss_curves.csv", LossColumns());
  if (!losses.ok()) return losses.status();
  auto metrics = MetricsOf(connection_, subject_);
  if (!metrics.ok()) return metrics.status();
  accuracy_columns_ = AccuracyColumns();
  first_metric_ = accuracy_columns_.size();
  for (const std::string& metric : *metrics) {
    accuracy_columns_.push_back(
        {metric, absl::StrCat("another measure of the same sequences: ", MetricTitle(metric),
                              ", a fraction and not a percentage")});
  }
  auto accuracies = OpenTable("length_accuracies.csv", accuracy_columns_);
  if (!accuracies.ok()) return accuracies.status();
  trials_ = *std::move(trials);
  losses_ = *std::move(losses);
  accuracies_ = *std::move(accuracies);
  return absl::OkStatus();
}

absl::Status CsvExporter::AddTrial(const v1::Trial& trial) {
  const auto history = FetchHistory(connection_, trial.name());
  if (!history.ok()) return history.status();
  const std::vector<Value> key = TrialKey(trial);
  Records trials;
  trials.rows.push_back(key);
  for (Value& value : TrialRow(trial)) trials.rows.back().push_back(std::move(value));

  Records losses;
  const v1::TrainingPoints& points = history->points;
  for (int i = 0; i < points.steps_size(); ++i) {
    std::vector<Value>& row = losses.rows.emplace_back(key);
    row.insert(
        row.end(),
        {points.steps(i), WithFewDigits(points.losses(i)), WithFewDigits(points.accuracies(i)),
         WithFewDigits(points.gradient_norms(i)), int64_t{points.lengths(i)},
         UtcText(absl::UnixEpoch() + absl::Seconds(history->times[static_cast<size_t>(i)]))});
  }

  Records accuracies;
  const int32_t seen_up_to = trial.specification().evaluation().seen_up_to();
  for (const TrialHistory::Evaluation& evaluation : history->evaluations) {
    const v1::LengthAccuracies& measured = evaluation.accuracies;
    for (int i = 0; i < measured.lengths_size(); ++i) {
      std::vector<Value>& row = accuracies.rows.emplace_back(key);
      row.insert(row.end(),
                 {evaluation.step, measured.final(), int64_t{measured.lengths(i)},
                  measured.lengths(i) <= seen_up_to, measured.accuracies(i),
                  OrNothing(i < measured.losses_size() ? std::optional<double>(measured.losses(i))
                                                       : std::nullopt),
                  int64_t{measured.sequences()}, measured.training_seconds()});
      for (size_t column = first_metric_; column < accuracy_columns_.size(); ++column) {
        row.push_back(MetricValue(measured, accuracy_columns_[column].name, i));
      }
    }
  }
  absl::Status status = trials_->Append(Rows(std::move(trials)));
  if (status.ok()) status = losses_->Append(Rows(std::move(losses)));
  if (status.ok()) status = accuracies_->Append(Rows(std::move(accuracies)));
  return status;
}

absl::Status CsvExporter::Finish() {
  absl::Status status = trials_->Close();
  if (status.ok()) status = losses_->Close();
  if (status.ok()) status = accuracies_->Close();
  if (!status.ok()) return status;
  const nlohmann::ordered_json meanings = {{"trials.csv", Meanings(TrialColumns())},
                                           {"loss_curves.csv", Meanings(LossColumns())},
                                           {"length_accuracies.csv", Meanings(accuracy_columns_)}};
  return output_.Write("columns.json", meanings.dump(1) + "\n");
}

}  // namespace lengthwise::client
