#include "client/export/npz_export.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/connection/names.h"
#include "client/export/npz_file.h"
#include "client/export/trial_history.h"
#include "client/rendering/attention_grid.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <typename To, typename From>
std::vector<To> As(const google::protobuf::RepeatedField<From>& field) {
  return std::vector<To>(field.begin(), field.end());
}

absl::Status AddLosses(const v1::TrainingPoints& points, NpzFile& npz) {
  const int64_t count = points.steps_size();
  if (count == 0) return absl::OkStatus();
  absl::Status status = npz.Add("loss_steps", {count}, As<int64_t>(points.steps()));
  if (status.ok()) status = npz.Add("losses", {count}, As<float>(points.losses()));
  if (status.ok()) {
    status = npz.Add("training_accuracies", {count}, As<float>(points.accuracies()));
  }
  if (status.ok()) status = npz.Add("gradient_norms", {count}, As<float>(points.gradient_norms()));
  if (status.ok()) status = npz.Add("training_lengths", {count}, As<int64_t>(points.lengths()));
  return status;
}

absl::Status AddEvaluations(const std::vector<TrialHistory::Evaluation>& evaluations,
                            NpzFile& npz) {
  std::vector<int64_t> steps;
  std::vector<int64_t> lengths;
  std::vector<double> accuracies;
  std::map<std::string, std::vector<double>> metrics;
  for (const TrialHistory::Evaluation& evaluation : evaluations) {
    const v1::LengthAccuracies& measured = evaluation.accuracies;
    const int64_t count = measured.lengths_size();
    if (measured.final()) {
      absl::Status status = npz.Add("final_lengths", {count}, As<int64_t>(measured.lengths()));
      if (status.ok()) {
        status = npz.Add("final_accuracies", {count}, As<double>(measured.accuracies()));
      }
      if (status.ok() && measured.losses_size() == count) {
        status = npz.Add("final_losses", {count}, As<double>(measured.losses()));
      }
      for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
        if (!status.ok()) break;
        status =
            npz.Add(absl::StrCat("final_", metric.name()), {count}, As<double>(metric.values()));
      }
      if (status.ok() && measured.has_training_accuracy()) {
        status = npz.Add("training_set_accuracy", {1},
                         std::vector<double>{measured.training_accuracy()});
      }
      if (!status.ok()) return status;
      continue;
    }
    // All of a trial have the same lengths.
    if (steps.empty()) lengths = As<int64_t>(measured.lengths());
    if (lengths != As<int64_t>(measured.lengths())) continue;
    steps.push_back(evaluation.step);
    accuracies.insert(accuracies.end(), measured.accuracies().begin(), measured.accuracies().end());
    for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
      std::vector<double>& values = metrics[metric.name()];
      // Evaluations that lack it have no number there.
      values.resize((steps.size() - 1) * lengths.size(), kNone);
      values.insert(values.end(), metric.values().begin(), metric.values().end());
    }
  }
  if (steps.empty()) return absl::OkStatus();
  const auto rows = static_cast<int64_t>(steps.size());
  const auto columns = static_cast<int64_t>(lengths.size());
  absl::Status status = npz.Add("interval_steps", {rows}, steps);
  if (status.ok()) status = npz.Add("interval_lengths", {columns}, lengths);
  if (status.ok()) status = npz.Add("interval_accuracies", {rows, columns}, accuracies);
  for (auto& [name, values] : metrics) {
    values.resize(accuracies.size(), kNone);
    if (status.ok()) status = npz.Add(absl::StrCat("interval_", name), {rows, columns}, values);
  }
  return status;
}

absl::Status AddWrongAnswers(const v1::SequenceScores& scores, NpzFile& npz) {
  std::vector<int64_t> sequences, carries, places;
  for (const v1::SequenceScores::WrongAnswer& answer : scores.wrong_answers()) {
    sequences.push_back(answer.sequence());
    carries.push_back(answer.carry_into_first() ? 1 : 0);
    for (const int32_t place : answer.places()) {
      places.insert(places.end(), {int64_t{answer.sequence()}, int64_t{place}});
    }
  }
  const int32_t length = scores.length();
  const auto count = static_cast<int64_t>(sequences.size());
  absl::Status status = npz.Add(absl::StrCat("wrong_answers_", length), {count}, sequences);
  if (status.ok()) {
    status = npz.Add(absl::StrCat("wrong_answer_carries_", length), {count}, carries);
  }
  if (!status.ok()) return status;
  return npz.Add(absl::StrCat("wrong_places_", length),
                 {static_cast<int64_t>(places.size() / 2), 2}, places);
}

absl::Status AddScores(const TrialHistory& history, NpzFile& npz) {
  absl::Status status;
  for (const auto& [length, scores] : history.sequence_scores) {
    status = npz.Add(absl::StrCat("sequence_accuracies_", length), {scores.accuracies_size()},
                     As<float>(scores.accuracies()));
    if (status.ok()) {
      status = npz.Add(absl::StrCat("sequence_losses_", length), {scores.losses_size()},
                       As<float>(scores.losses()));
    }
    if (status.ok() && scores.wrong_answers_size() > 0) status = AddWrongAnswers(scores, npz);
    if (!status.ok()) return status;
  }
  const v1::NoiseAccuracies& noise = history.noise_accuracies;
  const int64_t count = noise.deviations_size();
  if (count == 0) return absl::OkStatus();
  status = npz.Add("noise_deviations", {count}, As<double>(noise.deviations()));
  if (status.ok()) {
    status = npz.Add("noise_accuracies", {noise.accuracies_size()}, As<double>(noise.accuracies()));
  }
  if (status.ok()) {
    status = npz.Add("noise_losses", {noise.losses_size()}, As<double>(noise.losses()));
  }
  return status;
}

absl::Status AddAttention(const v1::AttentionMap& map, NpzFile& npz) {
  if (absl::Status status = AttentionProbabilities::Check(map); !status.ok()) return status;
  std::string name = map.input_number() > 0 ? absl::StrCat("attention_input_", map.input_number())
                                            : absl::StrCat("attention_length_", map.length());
  if (map.sequence() > 0) absl::StrAppend(&name, "_sequence_", map.sequence() + 1);
  const int64_t tokens = map.tokens_size();
  absl::Status status =
      npz.AddFloats(name, {map.layers(), map.heads(), tokens, tokens}, map.probabilities());
  if (status.ok()) status = npz.Add(name + "_tokens", {tokens}, As<int64_t>(map.tokens()));
  if (status.ok()) {
    status = npz.Add(name + "_positions", {map.positions_size()}, As<int64_t>(map.positions()));
  }
  return status;
}

absl::Status AddProjection(const v1::Projection& projection, NpzFile& npz) {
  const std::vector<int64_t> shape = {projection.depths(), projection.sequences(),
                                      projection.tokens(), 2};
  size_t bytes = sizeof(float);
  for (const int64_t extent : shape) bytes *= static_cast<size_t>(extent);
  if (projection.coordinates().size() != bytes ||
      projection.explained_variance_size() != 2 * projection.depths()) {
    return absl::DataLossError("a projection is damaged: its size is not that of its shape");
  }
  const std::string name = absl::StrCat("projection_length_", projection.length());
  absl::Status status = npz.AddFloats(name, shape, projection.coordinates());
  if (status.ok()) {
    status = npz.Add(name + "_explained_variance", {projection.depths(), 2},
                     As<double>(projection.explained_variance()));
  }
  return status;
}

}  // namespace

absl::Status NpzExporter::AddTrial(const v1::Trial& trial) {
  const auto history = FetchHistory(connection_, trial.name());
  if (!history.ok()) return history.status();
  const auto maps = connection_.QueryAttentionMaps(trial.name(), /*length=*/0);
  if (!maps.ok()) return maps.status();
  const auto projections = connection_.QueryProjections(trial.name());
  if (!projections.ok()) return projections.status();

  auto file = output_.Open(subject_.whole_experiment ? ShortName(trial.name()) + ".npz" : "");
  if (!file.ok()) return file.status();
  NpzFile npz(**file);
  absl::Status status = AddLosses(history->points, npz);
  if (status.ok()) status = AddEvaluations(history->evaluations, npz);
  if (status.ok()) status = AddScores(*history, npz);
  for (const v1::AttentionMap& map : *maps) {
    if (status.ok()) status = AddAttention(map, npz);
  }
  for (const v1::Projection& projection : *projections) {
    if (status.ok()) status = AddProjection(projection, npz);
  }
  if (!status.ok()) return status;
  if (npz.empty()) {
    return absl::NotFoundError(absl::StrCat(ShortName(trial.name()), " is ",
                                            v1::TrialState_Name(trial.state()),
                                            " and has measured nothing yet"));
  }
  status = npz.Finish();
  if (!status.ok()) return status;
  return (*file)->Close();
}

}  // namespace lengthwise::client
