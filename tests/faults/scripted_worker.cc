// A worker that runs ScriptedTrials: lengthwise_worker without the training. Starts in
// milliseconds.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/log.h"
#include "platform/service_lifecycle.h"
#include "tests/faults/scripted_trial.h"
#include "worker/connection/worker_loop.h"
#include "worker/pack_session.h"

namespace lengthwise::faults {
namespace {

using worker::PackSession;
using Directive = PackSession::Directive;

// One trial of a lease.
class Member {
 public:
  Member(const v1::Lease& lease, int index, PackSession& session)
      : leased_(lease.trials(index)),
        index_(index),
        session_(session),
        trial_(leased_.specification()) {}

  bool running() const { return running_; }
  int64_t step() const { return trial_.step(); }

  void Resume() {
    if (!leased_.has_checkpoint()) return;
    const absl::StatusOr<std::string> bytes = session_.FetchCheckpoint(index_);
    if (!bytes.ok()) {
      if (session_.GetDirective(index_) != Directive::kContinue) return;
      return End(v1::Outcome::FAILED_TEMPORARILY, std::string(bytes.status().message()));
    }
    if (!trial_.Resume(*bytes) || trial_.step() != leased_.checkpoint_step()) {
      return End(v1::Outcome::FAILED_PERMANENTLY, "the checkpoint is not this trial's");
    }
    first_step_ = last_checkpoint_ = trial_.step();
  }

  // Holds only two steps after the lease's first checkpoint, so that a drain has something to
  // store.
  bool MayHold() const {
    return last_checkpoint_ > first_step_ && trial_.step() >= last_checkpoint_ + 2;
  }

  // Makes a step, or ends the trial after the last one.
  void Advance() {
    if (session_.GetDirective(index_) == Directive::kCancelled) {
      running_ = false;
      return;
    }
    if (trial_.step() >= trial_.steps()) {
      v1::Event event;
      *event.mutable_length_accuracies() = trial_.Evaluate(/*final=*/true);
      Emit(std::move(event));
      return End(v1::Outcome::COMPLETED, "");
    }
    trial_.Advance(points_);
    if (points_.steps_size() >= 3) EmitPoints();
    if (trial_.IsEvaluationDue()) {
      v1::Event event;
      *event.mutable_length_accuracies() = trial_.Evaluate(/*final=*/false);
      Emit(std::move(event));
    }
    if (trial_.IsCheckpointDue()) EmitCheckpoint();
  }

  void EmitCheckpoint() {
    if (trial_.step() == last_checkpoint_) return;
    last_checkpoint_ = trial_.step();
    EmitPoints();
    session_.EmitCheckpoint(index_, trial_.step(), trial_.Checkpoint());
  }

 private:
  void EmitPoints() {
    if (points_.steps().empty()) return;
    v1::Event event;
    event.set_step(trial_.step());
    *event.mutable_training_points() = std::move(points_);
    points_.Clear();
    session_.Emit(index_, std::move(event));
  }
  void Emit(v1::Event event) {
    EmitPoints();
    event.set_step(trial_.step());
    session_.Emit(index_, std::move(event));
  }
  void End(v1::Outcome::Kind kind, const std::string& reason) {
    running_ = false;
    v1::Event event;
    event.mutable_outcome()->set_kind(kind);
    event.mutable_outcome()->set_reason(reason);
    event.mutable_outcome()->set_training_steps(trial_.step());
    Emit(std::move(event));
  }

  const v1::LeasedTrial& leased_;
  const int index_;
  PackSession& session_;
  ScriptedTrial trial_;
  v1::TrainingPoints points_;
  int64_t first_step_ = 0;
  int64_t last_checkpoint_ = 0;
  bool running_ = true;
};

class ScriptedRunner : public worker::PackRunner {
 public:
  // While the file `hold` exists, trials pause where they may hold. An empty path disables this.
  ScriptedRunner(int32_t max_pack_size, absl::Duration step_time, std::string hold)
      : max_pack_size_(max_pack_size), step_time_(step_time), hold_(std::move(hold)) {}

  absl::Status Run(const v1::Lease& lease, PackSession& session) override {
    std::vector<Member> members;
    members.reserve(lease.trials_size());
    for (int i = 0; i < lease.trials_size(); ++i) members.emplace_back(lease, i, session);
    for (Member& member : members) member.Resume();
    for (bool running = true; running;) {
      running = false;
      for (size_t i = 0; i < members.size(); ++i) {
        if (!members[i].running()) continue;
        const Directive directive = session.GetDirective(static_cast<int64_t>(i));
        if (directive == Directive::kLost) return absl::OkStatus();
        if (directive == Directive::kDrain) return Drain(members);
        if (!members[i].MayHold() || !std::filesystem::exists(hold_)) members[i].Advance();
        running = running || members[i].running();
      }
      absl::SleepFor(step_time_);
    }
    return absl::OkStatus();
  }

  v1::Provenance provenance() const override {
    v1::Provenance provenance;
    provenance.set_device("none");
    return provenance;
  }
  int32_t max_pack_size() const override { return max_pack_size_; }

 private:
  static absl::Status Drain(std::vector<Member>& members) {
    for (Member& member : members) {
      if (member.running()) member.EmitCheckpoint();
    }
    return absl::OkStatus();
  }

  const int32_t max_pack_size_;
  const absl::Duration step_time_;
  const std::string hold_;
};

int Main(int argc, char** argv) {
  platform::TerminationSignals signals;
  CLI::App app("Runs scripted trials for tests.", "scripted_worker");
  worker::WorkerLoop::Options options;
  int32_t max_pack_size = 2;
  int64_t step_microseconds = 1000;
  std::string hold;
  app.add_option("--server", options.server)->required();
  app.add_option("--worker_id", options.worker_id)->required();
  app.add_option("--max_pack_size", max_pack_size);
  app.add_option("--step_microseconds", step_microseconds);
  app.add_option("--hold", hold);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  // Tests restart servers often and must not wait for long backoffs.
  options.session.sender.backoff = {.initial = absl::Milliseconds(20),
                                    .maximum = absl::Milliseconds(200)};
  ScriptedRunner runner(max_pack_size, absl::Microseconds(step_microseconds), hold);
  worker::WorkerLoop loop(options, runner);
  signals.OnFirst([&loop](int) { loop.Drain(); });
  const absl::Status status = loop.Run();
  signals.OnFirst(nullptr);
  if (!status.ok()) platform::LogError(status.ToString());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace lengthwise::faults

int main(int argc, char** argv) { return lengthwise::faults::Main(argc, argv); }
