#include "server/api/queries.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "proto/training_points.h"
#include "rpc/status.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

constexpr int32_t kDefaultPoints = 1000;
constexpr int32_t kMaxPoints = 100'000;

// `bytes` counts also what was left out of `response` because the limit was reached.
template <typename Response>
absl::StatusOr<Response> AtMost(int64_t max_answer_bytes, absl::string_view advice, int64_t bytes,
                                Response response) {
  bytes = std::max(bytes, static_cast<int64_t>(response.ByteSizeLong()));
  if (bytes <= max_answer_bytes) return response;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the answer has ", bytes, " bytes, expected at most ", max_answer_bytes, "; ", advice));
}

template <typename T>
void AppendColumn(const google::protobuf::RepeatedField<T>& from, int size,
                  google::protobuf::RepeatedField<T>& to) {
  for (int i = 0; i < size; ++i) to.Add(i < from.size() ? from[i] : T());
}

float Mean(const google::protobuf::RepeatedField<float>& column, int begin, int end) {
  double sum = 0;
  for (int i = begin; i < end; ++i) sum += column[i];
  return static_cast<float>(sum / (end - begin));
}

// Appends the points [begin, end) of `points` to `to` as one averaged point.
void AddBucket(const v1::TrainingPoints& points, int begin, int end, v1::TrainingPoints& to) {
  to.add_steps(points.steps(end - 1));
  to.add_losses(Mean(points.losses(), begin, end));
  to.add_accuracies(Mean(points.accuracies(), begin, end));
  to.add_gradient_norms(Mean(points.gradient_norms(), begin, end));
  to.add_lengths(points.lengths(end - 1));
  if (!points.mean_losses().empty()) to.add_mean_losses(Mean(points.mean_losses(), begin, end));
}

}  // namespace

void AppendPoints(const v1::TrainingPoints& from, v1::TrainingPoints& to) {
  const int size = from.steps_size();
  AppendColumn(from.steps(), size, *to.mutable_steps());
  AppendColumn(from.losses(), size, *to.mutable_losses());
  AppendColumn(from.accuracies(), size, *to.mutable_accuracies());
  AppendColumn(from.gradient_norms(), size, *to.mutable_gradient_norms());
  AppendColumn(from.lengths(), size, *to.mutable_lengths());
  for (int i = 0; i < size; ++i) to.add_mean_losses(MeanLoss(from, i));
}

v1::TrainingPoints DownSample(const v1::TrainingPoints& points, int64_t max_points) {
  const int64_t size = points.steps_size();
  if (size <= max_points) return points;
  v1::TrainingPoints result;
  AddBucket(points, 0, 1, result);
  const int64_t between = size - 2;
  const int64_t buckets = max_points - 2;
  for (int64_t b = 0; b < buckets; ++b) {
    AddBucket(points, static_cast<int>(1 + b * between / buckets),
              static_cast<int>(1 + (b + 1) * between / buckets), result);
  }
  AddBucket(points, static_cast<int>(size - 1), static_cast<int>(size), result);
  return result;
}

absl::StatusOr<v1::QueryLossCurvesResponse> LossCurves(EventLog& log,
                                                       const v1::QueryLossCurvesRequest& request,
                                                       int64_t max_answer_bytes) {
  const int32_t max_points = request.max_points() == 0 ? kDefaultPoints : request.max_points();
  if (max_points < 2 || max_points > kMaxPoints) {
    return rpc::InvalidField("max_points", absl::StrCat("is ", request.max_points(),
                                                        "; accepted: 2 to 100000, or 0 for 1000"));
  }
  v1::QueryLossCurvesResponse response;
  int64_t bytes = 0;
  // Events are ordered by trial, so only one trial's curve is held in full.
  std::string trial;
  v1::TrainingPoints points;
  const auto end_trial = [&] {
    if (points.steps().empty()) return;
    v1::QueryLossCurvesResponse::Curve curve;
    curve.set_trial(trial);
    *curve.mutable_points() = DownSample(points, max_points);
    bytes += static_cast<int64_t>(curve.ByteSizeLong());
    if (bytes <= max_answer_bytes) *response.add_curves() = std::move(curve);
    points.Clear();
  };
  RETURN_IF_ERROR(log.ForEachEvent(request.name(), v1::Event::kTrainingPointsFieldNumber,
                                   [&](const v1::Event& event) {
                                     if (event.trial() != trial) {
                                       end_trial();
                                       trial = event.trial();
                                     }
                                     AppendPoints(event.training_points(), points);
                                   }));
  end_trial();
  return AtMost(max_answer_bytes, "ask for fewer max_points or for one trial at a time", bytes,
                std::move(response));
}

absl::StatusOr<v1::QueryLengthAccuraciesResponse> LengthAccuracies(
    EventLog& log, const v1::QueryLengthAccuraciesRequest& request, int64_t max_answer_bytes) {
  v1::QueryLengthAccuraciesResponse response;
  int64_t bytes = 0;
  RETURN_IF_ERROR(log.ForEachEvent(
      request.name(), v1::Event::kLengthAccuraciesFieldNumber, [&](const v1::Event& event) {
        if (!event.length_accuracies().final() && !request.include_intervals()) return;
        v1::QueryLengthAccuraciesResponse::Evaluation evaluation;
        evaluation.set_trial(event.trial());
        evaluation.set_step(event.step());
        *evaluation.mutable_accuracies() = event.length_accuracies();
        bytes += static_cast<int64_t>(evaluation.ByteSizeLong());
        if (bytes <= max_answer_bytes) *response.add_evaluations() = std::move(evaluation);
      }));
  return AtMost(max_answer_bytes, "ask for one trial at a time", bytes, std::move(response));
}

absl::StatusOr<v1::SummarizeExperimentResponse> Summary(
    Reads& reads, const v1::SummarizeExperimentRequest& request, int64_t max_answer_bytes) {
  if (!request.select().empty() && request.select() != "seen" && request.select() != "unseen") {
    return rpc::InvalidField(
        "select", absl::StrCat("is \"", request.select(), "\"; accepted: seen, unseen, or empty"));
  }
  ASSIGN_OR_RETURN(auto response, reads.SummarizeExperiment(request));
  return AtMost(max_answer_bytes,
                request.omit_lengths() ? "list the trials page by page" : "set omit_lengths",
                /*bytes=*/0, std::move(response));
}

absl::StatusOr<std::vector<int64_t>> AttentionMaps(EventLog& log,
                                                   const v1::QueryAttentionMapsRequest& request) {
  RETURN_IF_ERROR(ParseTrialName(request.name()).status());
  if (request.length() < 0) {
    return rpc::InvalidField("length",
                             absl::StrCat("is ", request.length(), "; accepted: 0 or more"));
  }
  std::vector<int64_t> positions;
  RETURN_IF_ERROR(log.ForEachEvent(
      request.name(), v1::Event::kAttentionMapFieldNumber, [&](const v1::Event& event) {
        if (request.length() != 0 && event.attention_map().length() != request.length()) return;
        positions.push_back(event.position());
      }));
  return positions;
}

absl::StatusOr<std::vector<int64_t>> Projections(EventLog& log,
                                                 const v1::QueryProjectionsRequest& request) {
  RETURN_IF_ERROR(ParseTrialName(request.name()).status());
  std::vector<int64_t> positions;
  RETURN_IF_ERROR(
      log.ForEachEvent(request.name(), v1::Event::kProjectionFieldNumber,
                       [&](const v1::Event& event) { positions.push_back(event.position()); }));
  return positions;
}

absl::StatusOr<std::vector<int64_t>> Analyses(EventLog& log,
                                              const v1::QueryAnalysesRequest& request) {
  std::vector<int64_t> positions;
  for (const int kind :
       {v1::Event::kSequenceScoresFieldNumber, v1::Event::kNoiseAccuraciesFieldNumber,
        v1::Event::kAnswerErrorsFieldNumber, v1::Event::kAnswerFieldNumber}) {
    RETURN_IF_ERROR(log.ForEachEvent(request.name(), kind, [&](const v1::Event& event) {
      positions.push_back(event.position());
    }));
  }
  return positions;
}

absl::StatusOr<v1::Event> EventAt(EventLog& log, absl::string_view experiment_or_trial,
                                  int64_t position) {
  ASSIGN_OR_RETURN(EventPage page, log.ReadEvents(experiment_or_trial, position, /*max_events=*/1));
  if (page.events.empty() || page.events[0].position() != position) {
    return absl::AbortedError(
        "an attempt replaced the trial's history while it was sent; call again");
  }
  return std::move(page.events[0]);
}

}  // namespace lengthwise::server
