#include "server/coordination/event_checks.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "platform/sha256.h"
#include "proto/length_accuracies.h"

namespace lengthwise::server {
namespace {

std::string Problem(const v1::TrainingPoints& points) {
  const int count = points.steps_size();
  if (points.losses_size() != count || points.accuracies_size() != count ||
      points.gradient_norms_size() != count || points.lengths_size() != count ||
      (points.mean_losses_size() > 0 && points.mean_losses_size() != count)) {
    return "the columns of training_points differ in length";
  }
  for (int i = 1; i < count; ++i) {
    if (points.steps(i) <= points.steps(i - 1)) return "training_points.steps do not ascend";
  }
  return "";
}

std::string Problem(const v1::SequenceScores& scores) {
  if (scores.length() < 1) return "sequence_scores.length is below 1";
  if (scores.losses_size() != scores.accuracies_size()) {
    return "the columns of sequence_scores differ in length";
  }
  int32_t before = -1;
  for (const v1::SequenceScores::WrongAnswer& answer : scores.wrong_answers()) {
    if (answer.sequence() <= before) return "sequence_scores.wrong_answers do not ascend";
    if (answer.sequence() >= scores.accuracies_size()) {
      return "sequence_scores.wrong_answers names a sequence that does not exist";
    }
    before = answer.sequence();
    int32_t place = -1;
    for (const int32_t next : answer.places()) {
      if (next <= place) return "sequence_scores.wrong_answers.places do not ascend from 0";
      place = next;
    }
  }
  return "";
}

std::string Problem(const v1::NoiseAccuracies& noise) {
  const int count = noise.deviations_size();
  const bool equal = noise.accuracies_size() == count && noise.losses_size() == count;
  return equal ? "" : "the columns of noise_accuracies differ in length";
}

std::string Problem(const v1::AnswerErrors& errors) {
  if (errors.length() < 1) return "answer_errors.length is below 1";
  if (errors.places_by_carry_size() != errors.wrong_by_carry_size()) {
    return "the columns of answer_errors by carry differ in length";
  }
  return errors.answers() >= 0 ? "" : "answer_errors.answers is negative";
}

std::string Problem(const v1::Answer& answer) {
  if (answer.length() < 1) return "answer.length is below 1";
  if (answer.input_number() < 0) return "answer.input_number is negative";
  if (answer.sequence() < 0) return "answer.sequence is negative";
  int32_t before = -1;
  for (const int32_t symbol : answer.wrong()) {
    if (symbol <= before) return "answer.wrong does not ascend from 0";
    before = symbol;
  }
  return before < std::max(answer.expected_size(), answer.given_size())
             ? ""
             : "answer.wrong names a symbol that does not exist";
}

std::string Problem(const v1::Checkpoint& checkpoint) {
  if (!platform::IsSha256Hex(checkpoint.sha256())) {
    return "checkpoint.sha256 is not 64 lower-case hexadecimal digits";
  }
  return checkpoint.size_bytes() >= 1 ? "" : "checkpoint.size_bytes is below 1";
}

std::string Problem(const v1::Outcome& outcome) {
  const bool known =
      v1::Outcome::Kind_IsValid(outcome.kind()) && outcome.kind() != v1::Outcome::KIND_UNSPECIFIED;
  return known ? "" : "outcome.kind is unknown";
}

// True if `bytes` holds exactly as many float32 as the product of `sizes`, each at least 1.
bool HoldsFloats(const std::string& bytes, std::initializer_list<int64_t> sizes) {
  absl::uint128 wanted = sizeof(float);
  for (const int64_t size : sizes) {
    // A product of four sizes below 2^31 fits 128 bits.
    if (size < 1) return false;
    wanted *= static_cast<uint64_t>(size);
  }
  return wanted == bytes.size();
}

std::string Problem(const v1::AttentionMap& map) {
  if (map.length() < 1) return "attention_map.length is below 1";
  if (map.input_number() < 0) return "attention_map.input_number is negative";
  if (map.sequence() < 0) return "attention_map.sequence is negative";
  if (map.first_layer() < 0) return "attention_map.first_layer is negative";
  if (map.positions_size() + map.real_positions_size() != map.tokens_size()) {
    return "attention_map.positions and tokens differ in length";
  }
  const int64_t tokens = map.tokens_size();
  return HoldsFloats(map.probabilities(), {map.layers(), map.heads(), tokens, tokens})
             ? ""
             : "attention_map.probabilities are not float32 [layers, heads, tokens, tokens]";
}

std::string Problem(const v1::Projection& projection) {
  if (projection.fitted_length() < 1) return "projection.fitted_length is below 1";
  if (projection.length() < 1) return "projection.length is below 1";
  if (!HoldsFloats(projection.coordinates(),
                   {projection.depths(), projection.sequences(), projection.tokens(), 2})) {
    return "projection.coordinates are not float32 [depths, sequences, tokens, 2]";
  }
  return projection.explained_variance_size() == 2 * int64_t{projection.depths()}
             ? ""
             : "projection.explained_variance is not [depths, 2]";
}

std::string Problem(const v1::Event& event) {
  if (event.step() < 0) return "step is negative";
  switch (event.fact_case()) {
    case v1::Event::kTrainingPoints:
      return Problem(event.training_points());
    case v1::Event::kLengthAccuracies:
      return LengthAccuraciesProblem(event.length_accuracies());
    case v1::Event::kCheckpoint:
      return Problem(event.checkpoint());
    case v1::Event::kOutcome:
      return Problem(event.outcome());
    case v1::Event::kAttentionMap:
      return Problem(event.attention_map());
    case v1::Event::kProjection:
      return Problem(event.projection());
    case v1::Event::kSequenceScores:
      return Problem(event.sequence_scores());
    case v1::Event::kNoiseAccuracies:
      return Problem(event.noise_accuracies());
    case v1::Event::kAnswerErrors:
      return Problem(event.answer_errors());
    case v1::Event::kAnswer:
      return Problem(event.answer());
    case v1::Event::kLogLine:
      if (static_cast<int64_t>(event.log_line().text().size()) <= kMaxLogLineBytes) return "";
      return absl::StrCat("log_line.text has ", event.log_line().text().size(),
                          " bytes; accepted are ", kMaxLogLineBytes);
    case v1::Event::kStateChange:
      return "only the server may send changes of state";
    case v1::Event::FACT_NOT_SET:
      return "no fact is set";
  }
  return "the fact is unknown";
}

}  // namespace

absl::StatusOr<std::vector<Events>> PartsOf(const v1::StreamEventsRequest& request) {
  if (request.events().empty()) return absl::InvalidArgumentError("events: is empty");
  if (request.events_size() > kMaxEvents) {
    return absl::InvalidArgumentError(
        absl::StrCat("events: has ", request.events_size(), "; accepted are at most ", kMaxEvents));
  }
  const Events all(request.events().data(), static_cast<size_t>(request.events_size()));
  std::vector<Events> parts;
  for (size_t first = 0, end = 1; end <= all.size(); ++end) {
    if (end < all.size() && all[end]->trial() == all[first]->trial()) continue;
    if (parts.size() == kMaxParts) {
      return absl::InvalidArgumentError(
          absl::StrCat("events: are of more than ", kMaxParts, " trials"));
    }
    parts.push_back(all.subspan(first, end - first));
    first = end;
  }
  return parts;
}

absl::Status CheckEvents(Events events) {
  // Far below the largest int64, so that sums of a sequence and a number of events fit one.
  constexpr int64_t kMaxSequence = int64_t{1} << 62;
  const v1::Event& first = *events.front();
  if (first.sequence() < 1) return absl::InvalidArgumentError("events[0]: sequence is below 1");
  if (first.sequence() > kMaxSequence) {
    return absl::InvalidArgumentError("events[0]: sequence is above 2^62");
  }
  for (size_t i = 0; i < events.size(); ++i) {
    const v1::Event& event = *events[i];
    std::string problem = Problem(event);
    if (event.attempt() != first.attempt()) problem = "its attempt differs from that of events[0]";
    if (event.sequence() != first.sequence() + static_cast<int64_t>(i)) {
      problem = "sequence is not consecutive";
    }
    if (event.has_outcome() && i + 1 < events.size()) {
      problem = "an outcome must be the last event of its attempt";
    }
    if (!problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("events[", i, "]: ", problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
