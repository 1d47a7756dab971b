#include "server/coordination/event_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "platform/sha256.h"

namespace lengthwise::server {
namespace {

std::string Problem(const v1::TrainingPoints& points) {
  const int count = points.steps_size();
  if (points.losses_size() != count || points.accuracies_size() != count ||
      points.gradient_norms_size() != count || points.lengths_size() != count) {
    return "the columns of training_points differ in length";
  }
  for (int i = 1; i < count; ++i) {
    if (points.steps(i) <= points.steps(i - 1)) return "training_points.steps do not ascend";
  }
  return "";
}

std::string Problem(const v1::LengthAccuracies& accuracies) {
  const int count = accuracies.lengths_size();
  const bool equal = accuracies.accuracies_size() == count && accuracies.losses_size() == count;
  return equal ? "" : "the columns of length_accuracies differ in length";
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
  return known ? "" : "outcome.kind is not known";
}

std::string Problem(const v1::Event& event) {
  if (event.step() < 0) return "step is negative";
  switch (event.fact_case()) {
    case v1::Event::kTrainingPoints:
      return Problem(event.training_points());
    case v1::Event::kLengthAccuracies:
      return Problem(event.length_accuracies());
    case v1::Event::kCheckpoint:
      return Problem(event.checkpoint());
    case v1::Event::kOutcome:
      return Problem(event.outcome());
    case v1::Event::kAttentionMap:
    case v1::Event::kLogLine:
      return "";
    case v1::Event::kStateChange:
      return "changes of state are the server's to tell";
    case v1::Event::FACT_NOT_SET:
      return "no fact is set";
  }
  return "the fact is not known";
}

}  // namespace

absl::Status CheckEvents(const v1::StreamEventsRequest& request) {
  if (request.events().empty()) return absl::InvalidArgumentError("events: none");
  const v1::Event& first = request.events(0);
  if (first.sequence() < 1) return absl::InvalidArgumentError("events[0]: sequence is below 1");
  for (int i = 0; i < request.events_size(); ++i) {
    const v1::Event& event = request.events(i);
    std::string problem = Problem(event);
    if (event.trial() != first.trial()) problem = "another trial than events[0]";
    if (event.attempt() != first.attempt()) problem = "another attempt than events[0]";
    if (event.sequence() != first.sequence() + i) problem = "sequence is not consecutive";
    if (event.has_outcome() && i + 1 < request.events_size()) {
      problem = "an outcome is the last event of its attempt";
    }
    if (!problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("events[", i, "]: ", problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
