// Emits one trial's events in the order that readers and resumption rely on.
#ifndef LENGTHWISE_WORKER_TRAINING_TRIAL_REPORTER_H_
#define LENGTHWISE_WORKER_TRAINING_TRIAL_REPORTER_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "worker/pack_session.h"

namespace lengthwise::worker::training {

// Batches points of the loss curve: at most ten per event, for at most about a second. Waiting
// points are sent before any other event of the trial. So a batch never spans a checkpoint, and
// everything up to a checkpoint's step precedes it. Points still waiting when the trial is dropped
// are discarded.
//
// Not thread-safe. No LibTorch.
class TrialReporter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Point {
    int64_t step = 0;
    float loss = 0;
    float accuracy = 0;
    float gradient_norm = 0;
    // Input length of the batch.
    int32_t length = 0;
    float mean_loss = 0;
  };

  // `trial` is the trial's index in the lease. The session must outlive the reporter.
  TrialReporter(PackSession& session, int64_t trial, TimePoint now)
      : session_(session), trial_(trial), last_sent_(now) {}

  void AddPoint(const Point& point, TimePoint now);
  // Sends points that have waited long enough. Cheap; call it at every step.
  void Tick(TimePoint now);

  // Send an event of `step` or a checkpoint, after all points so far. The event is `event`, or has
  // `fact` in its field, &v1::Event::mutable_NAME.
  void Emit(int64_t step, v1::Event event);
  template <typename Fact>
  void Emit(int64_t step, Fact* (v1::Event::*field)(), Fact fact) {
    v1::Event event;
    *(event.*field)() = std::move(fact);
    Emit(step, std::move(event));
  }
  void EmitCheckpoint(int64_t step, std::string bytes);
  // Sends a line of the trial's log, as an event of `step`.
  void Log(int64_t step, v1::LogLine::Severity severity, absl::string_view text);

 private:
  void SendPoints();

  PackSession& session_;
  const int64_t trial_;
  v1::TrainingPoints waiting_;
  TimePoint last_sent_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_TRIAL_REPORTER_H_
