// The line between training (which knows LibTorch and no gRPC) and the connection (which knows gRPC
// and no LibTorch).
#ifndef LENGTHWISE_WORKER_PACK_SESSION_H_
#define LENGTHWISE_WORKER_PACK_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// What a running pack sees of the world. Trials are named by their index in the lease. Thread-safe.
class PackSession {
 public:
  enum class Directive {
    kContinue,
    kCancelled,  // stop this trial, write nothing more of it
    kLost,       // the lease is over: stop all, write nothing more
    // Write checkpoints of all trials as soon as possible, then return: the worker stops, or
    // another pack goes first.
    kDrain,
  };

  virtual ~PackSession() = default;

  // Hands over an event (its fact and step; the session sets trial, attempt, sequence and time).
  // Returns at once while there is room and otherwise waits until the server has taken some, or the
  // lease is over.
  virtual void Emit(int64_t trial, v1::Event event) = 0;

  // Hands over a checkpoint's bytes; the session uploads them and emits the Checkpoint event behind
  // the events that came before. Waits as Emit does.
  virtual void EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) = 0;

  // Fetches the checkpoint that the lease names for the trial.
  virtual absl::StatusOr<std::string> FetchCheckpoint(int64_t trial) = 0;

  // Returns the path of a file of examples that the trial's task names, fetched where it is not on
  // this machine; its bytes have this SHA-256.
  virtual absl::StatusOr<std::string> FetchData(int64_t trial, absl::string_view sha256,
                                                int64_t bytes) {
    return absl::UnimplementedError("this session brings no files of examples");
  }

  // The newest progress replaces the one before.
  virtual void ReportProgress(int64_t trial, v1::TrialProgress progress) = 0;

  // Cheap: asked at every step.
  virtual Directive GetDirective(int64_t trial) = 0;

  // For the metrics; cheap.
  struct StepTime {
    // Trials that made the step together.
    int64_t models = 1;
    double seconds = 0;
    // Of them, those in which the device waited for samples and positions.
    double data_wait_seconds = 0;
  };
  virtual void CountStep(const StepTime& step) {}
  virtual void CountEvaluation(double seconds) {}
  // From the request to the bytes in the session's hands.
  virtual void CountCheckpoint(double seconds, int64_t bytes) {}
};

// Trains and evaluates packs on one device.
class PackRunner {
 public:
  virtual ~PackRunner() = default;

  // Runs all trials of the lease to their outcomes, which it emits; returns when all have one, or
  // are cancelled, or the lease is lost or drained. An error means that nothing could be run at
  // all; the caller releases the lease.
  virtual absl::Status Run(const v1::Lease& lease, PackSession& session) = 0;

  // What it runs on, with the kernels of the newest pack; any thread.
  virtual v1::Provenance provenance() const = 0;
  // How many trials of a pack it trains at once.
  virtual int32_t max_pack_size() const = 0;
};

struct PackRunnerOptions {
  // "cpu", "cuda:N" or "auto": the first CUDA device, or the CPU where there is none.
  std::string device = "auto";
  // Threads of CPU kernels; 0 means one for each usable CPU. Results do not depend on it.
  int32_t threads = 0;
  // Trials of a pack; 0 means 30 on CUDA and 1 on a CPU, where packing gains nothing.
  int32_t max_pack_size = 0;
  // "auto", "fused" or "plain": how a CUDA device computes the operations for which this program
  // has kernels (training/pack_kernels.h).
  std::string kernels = "auto";
};

// INVALID_ARGUMENT for a device that is not there, saying which are, and for other kernels.
// Implemented in
// worker/training.
absl::StatusOr<std::unique_ptr<PackRunner>> CreatePackRunner(const PackRunnerOptions& options);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_PACK_SESSION_H_
