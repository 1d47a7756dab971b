// A PackSession for tests that stores everything it receives, in place of connection and server.
#ifndef LENGTHWISE_WORKER_TRAINING_TESTING_RECORDING_SESSION_H_
#define LENGTHWISE_WORKER_TRAINING_TESTING_RECORDING_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "worker/pack_session.h"

namespace lengthwise::worker {

// Not thread-safe.
class RecordingSession : public PackSession {
 public:
  // Answers GetDirective; `asked` counts earlier calls. Default: kContinue.
  std::function<Directive(int64_t trial, int64_t asked)> directive;

  void Emit(int64_t trial, v1::Event event) override;
  void EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) override;
  absl::StatusOr<std::string> FetchCheckpoint(int64_t trial) override;
  void ReportProgress(int64_t trial, v1::TrialProgress progress) override;
  Directive GetDirective(int64_t trial) override;

  // Simulates a new attempt: drops everything recorded after each trial's last checkpoint and makes
  // the lease resume from there.
  void Rewind(v1::Lease& lease);

  const std::vector<v1::Event>& events(int64_t trial) { return events_[trial]; }
  const std::vector<v1::TrialProgress>& progress(int64_t trial) { return progress_[trial]; }
  int64_t asked() const { return asked_; }
  // Bytes of a trial's checkpoints, by step.
  std::map<int64_t, std::string>& checkpoints(int64_t trial) { return checkpoints_[trial]; }

  // Returns the trial's events as text, one fact per line and each point of the loss curve on its
  // own line, without wall-clock seconds. Equal for runs that a reader cannot tell apart.
  std::vector<std::string> History(int64_t trial);
  // Returns the trial's last event if it is an outcome, else an empty outcome.
  v1::Outcome OutcomeOf(int64_t trial);

 private:
  std::map<int64_t, std::vector<v1::Event>> events_;
  std::map<int64_t, std::vector<v1::TrialProgress>> progress_;
  std::map<int64_t, std::map<int64_t, std::string>> checkpoints_;
  int64_t asked_ = 0;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_TRAINING_TESTING_RECORDING_SESSION_H_
