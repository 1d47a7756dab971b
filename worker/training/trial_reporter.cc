#include "worker/training/trial_reporter.h"

#include <utility>

namespace lengthwise::worker::training {
namespace {

constexpr int kPointsPerEvent = 10;
constexpr std::chrono::seconds kLongestWait{1};

}  // namespace

void TrialReporter::AddPoint(const Point& point, TimePoint now) {
  waiting_.add_steps(point.step);
  waiting_.add_losses(point.loss);
  waiting_.add_accuracies(point.accuracy);
  waiting_.add_gradient_norms(point.gradient_norm);
  waiting_.add_lengths(point.length);
  waiting_.add_mean_losses(point.mean_loss);
  Tick(now);
}

void TrialReporter::Tick(TimePoint now) {
  const bool is_full = waiting_.steps_size() >= kPointsPerEvent;
  if (waiting_.steps_size() == 0 || (!is_full && now - last_sent_ < kLongestWait)) return;
  SendPoints();
  last_sent_ = now;
}

void TrialReporter::Emit(int64_t step, v1::Event event) {
  SendPoints();
  event.set_step(step);
  session_.Emit(trial_, std::move(event));
}

void TrialReporter::EmitCheckpoint(int64_t step, std::string bytes) {
  // Points up to this step come first: a resumed attempt repeats only what follows the checkpoint.
  SendPoints();
  session_.EmitCheckpoint(trial_, step, std::move(bytes));
}

void TrialReporter::Log(int64_t step, v1::LogLine::Severity severity, absl::string_view text) {
  v1::Event event;
  event.mutable_log_line()->set_severity(severity);
  event.mutable_log_line()->set_text(std::string(text));
  Emit(step, std::move(event));
}

void TrialReporter::SendPoints() {
  if (waiting_.steps_size() == 0) return;
  v1::Event event;
  event.set_step(*waiting_.steps().rbegin());
  *event.mutable_training_points() = std::exchange(waiting_, {});
  session_.Emit(trial_, std::move(event));
}

}  // namespace lengthwise::worker::training
