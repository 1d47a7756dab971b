#include "client/export/json_export.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/export/csv_export.h"
#include "client/export/trial_history.h"
#include "client/rendering/message_json.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<Json> ToJson(const google::protobuf::Message& message) {
  const auto text = MessageJson(message);
  if (!text.ok()) return text.status();
  return Json::parse(*text);
}

Json ToJson(const Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

template <typename T>
std::vector<T> Column(const google::protobuf::RepeatedField<T>& field) {
  return {field.begin(), field.end()};
}

std::vector<double> Column(const google::protobuf::RepeatedField<float>& field) {
  std::vector<double> column;
  for (const float value : field) column.push_back(WithFewDigits(value));
  return column;
}

// What is not UTF-8 in a user's text is replaced, not refused.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AddColumns(const std::vector<ExportColumn>& columns, const std::vector<Value>& row,
                Json& json) {
  for (size_t i = 0; i < columns.size(); ++i) json[columns[i].name] = ToJson(row[i]);
}

Json SequenceScoresJson(const v1::SequenceScores& scores) {
  Json json = {{"length", scores.length()},
               {"accuracies", Column(scores.accuracies())},
               {"losses", Column(scores.losses())}};
  for (const v1::SequenceScores::WrongAnswer& answer : scores.wrong_answers()) {
    json["wrong_answers"].push_back({{"sequence", answer.sequence()},
                                     {"places", Column(answer.places())},
                                     {"carry_into_first", answer.carry_into_first()}});
  }
  return json;
}

}  // namespace

absl::Status JsonExporter::Begin() {
  auto file = output_.Open();
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  const v1::Experiment& experiment = subject_.experiment;
  const auto specification = ToJson(experiment.specification());
  if (!specification.ok()) return specification.status();
  Json json = {{"format", "lengthwise.export.1"},
               {"experiment", experiment.name()},
               {"owner", experiment.owner()},
               {"specification", *specification}};
  json["trials"] = Json::array();
  std::string text = Dump(json);
  // The trials come one by one, and the brackets last.
  text.resize(text.size() - 2);
  return file_->Append(text);
}

absl::Status JsonExporter::AddTrial(const v1::Trial& trial) {
  const auto history = FetchHistory(connection_, trial.name());
  if (!history.ok()) return history.status();
  const auto specification = ToJson(trial.specification());
  if (!specification.ok()) return specification.status();
  Json json = Json::object();
  AddColumns(TrialKeyColumns(), TrialKey(trial), json);
  AddColumns(TrialColumns(), TrialRow(trial), json);
  json["specification"] = *specification;
  const v1::TrainingPoints& points = history->points;
  json["loss_curve"] = {{"steps", Column(points.steps())},
                        {"losses", Column(points.losses())},
                        {"accuracies", Column(points.accuracies())},
                        {"gradient_norms", Column(points.gradient_norms())},
                        {"lengths", Column(points.lengths())}};
  json["evaluations"] = Json::array();
  for (const TrialHistory::Evaluation& evaluation : history->evaluations) {
    const v1::LengthAccuracies& measured = evaluation.accuracies;
    Json metrics = Json::object();
    for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
      metrics[metric.name()] = Column(metric.values());
    }
    json["evaluations"].push_back({{"step", evaluation.step},
                                   {"final", measured.final()},
                                   {"sequences", measured.sequences()},
                                   {"training_seconds", measured.training_seconds()},
                                   {"lengths", Column(measured.lengths())},
                                   {"accuracies", Column(measured.accuracies())},
                                   {"losses", Column(measured.losses())},
                                   {"metrics", std::move(metrics)}});
  }
  for (const auto& [length, scores] : history->sequence_scores) {
    json["sequence_scores"].push_back(SequenceScoresJson(scores));
  }
  return file_->Append(absl::StrCat(std::exchange(first_, false) ? "\n" : ",\n", Dump(json)));
}

absl::Status JsonExporter::Finish() {
  if (absl::Status status = file_->Append("\n]}\n"); !status.ok()) return status;
  return file_->Close();
}

}  // namespace lengthwise::client
