#include "worker/training/testing/recording_session.h"

#include <openssl/sha.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace lengthwise::worker {
namespace {

std::string Sha256(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

}  // namespace

void RecordingSession::Emit(int64_t trial, v1::Event event) {
  events_[trial].push_back(std::move(event));
}

void RecordingSession::EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) {
  v1::Event event;
  event.set_step(step);
  event.mutable_checkpoint()->set_sha256(Sha256(bytes));
  event.mutable_checkpoint()->set_size_bytes(static_cast<int64_t>(bytes.size()));
  events_[trial].push_back(std::move(event));
  checkpoints_[trial][step] = std::move(bytes);
}

absl::StatusOr<std::string> RecordingSession::FetchCheckpoint(int64_t trial) {
  if (checkpoints_[trial].empty()) return absl::NotFoundError("no checkpoint");
  return checkpoints_[trial].rbegin()->second;
}

void RecordingSession::ReportProgress(int64_t trial, v1::TrialProgress progress) {
  progress_[trial].push_back(std::move(progress));
}

PackSession::Directive RecordingSession::GetDirective(int64_t trial) {
  const int64_t asked = asked_++;
  return directive ? directive(trial, asked) : Directive::kContinue;
}

void RecordingSession::Rewind(v1::Lease& lease) {
  for (int64_t i = 0; i < lease.trials_size(); ++i) {
    v1::LeasedTrial& trial = *lease.mutable_trials(static_cast<int>(i));
    std::vector<v1::Event>& events = events_[i];
    while (!events.empty() && !events.back().has_checkpoint()) events.pop_back();
    trial.set_attempt(trial.attempt() + 1);
    if (events.empty()) continue;
    *trial.mutable_checkpoint() = events.back().checkpoint();
    trial.set_checkpoint_step(events.back().step());
  }
}

std::vector<std::string> RecordingSession::History(int64_t trial) {
  std::vector<std::string> history;
  for (v1::Event event : events_[trial]) {
    if (event.has_training_points()) {
      const v1::TrainingPoints& points = event.training_points();
      for (int i = 0; i < points.steps_size(); ++i) {
        // Nine significant digits distinguish any two floats.
        history.push_back(
            absl::StrFormat("point %d loss %.9g accuracy %.9g norm %.9g length %d mean %.9g",
                            points.steps(i), points.losses(i), points.accuracies(i),
                            points.gradient_norms(i), points.lengths(i), points.mean_losses(i)));
      }
      continue;
    }
    if (event.has_length_accuracies()) {
      event.mutable_length_accuracies()->clear_training_seconds();
    }
    if (event.has_outcome()) {
      event.mutable_outcome()->clear_training_seconds();
      event.mutable_outcome()->clear_evaluation_seconds();
    }
    history.push_back(event.ShortDebugString());
  }
  return history;
}

v1::Outcome RecordingSession::OutcomeOf(int64_t trial) {
  const std::vector<v1::Event>& events = events_[trial];
  return events.empty() ? v1::Outcome() : events.back().outcome();
}

}  // namespace lengthwise::worker
