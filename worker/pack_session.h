// The interface between training, which uses LibTorch but not gRPC, and the connection, which uses
// gRPC but not LibTorch.
//
//   connection --lease--> PackRunner          one of a worker and its device
//                            \--> PackRun     one of a lease, or of a half that fits the memory:
//                                 |           steps, evaluations, checkpoints, outcomes
//              <--events------ PackSession    its access to the server
//                                 |
//                                 |--> PackKernels      which kernels its shape uses on a GPU
//                                 |--> PackEvaluation   accuracies and what analyses read
//                                 \--> PackModel        its models on the device: steps, scores
//                                        |              (interface without tensors)
//                                        \--> PackTraining    the step that all tasks share, with
//                                                             weights and optimizer's state; a
//                                                             subclass for networks, one for text
#ifndef LENGTHWISE_WORKER_PACK_SESSION_H_
#define LENGTHWISE_WORKER_PACK_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// A running pack's access to the server. A trial is identified by its index in the lease.
// Thread-safe.
class PackSession {
 public:
  enum class Directive {
    kContinue,
    kCancelled,  // stop this trial; write nothing more for it
    kLost,       // the lease is over: stop all trials; write nothing more
    // Checkpoint all trials as soon as possible, then return: the worker stops, or another pack has
    // priority.
    kDrain,
  };

  virtual ~PackSession() = default;

  // Queues an event for the server. The caller sets the fact and the step; the session sets trial,
  // attempt, sequence and time. Blocks (back-pressure) while the queue is full, until the server
  // acknowledges events or the lease ends.
  virtual void Emit(int64_t trial, v1::Event event) = 0;

  // Queues a checkpoint. The session uploads its bytes and then sends the Checkpoint event, after
  // all events queued earlier. Blocks like Emit.
  virtual void EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) = 0;

  // Fetches the checkpoint that the lease names for the trial.
  virtual absl::StatusOr<std::string> FetchCheckpoint(int64_t trial) = 0;

  // Returns the path of a data file of the trial's task, identified by its SHA-256. Downloads it
  // unless this machine has it. FAILED_PRECONDITION: this machine cannot store it.
  virtual absl::StatusOr<std::string> FetchData(int64_t trial, absl::string_view sha256,
                                                int64_t bytes) {
    return absl::UnimplementedError("this session provides no data files");
  }

  // Only the latest progress is kept. The session sets its trial and attempt.
  virtual void ReportProgress(int64_t trial, v1::TrialProgress progress) = 0;

  // Cheap: called at every step.
  virtual Directive GetDirective(int64_t trial) = 0;

  // For the metrics; cheap.
  struct StepTime {
    // Number of trials that the step trained.
    int64_t models = 1;
    double seconds = 0;
    // The part of `seconds` in which the device waited for samples and positions.
    double data_wait_seconds = 0;
  };
  virtual void CountStep(const StepTime& step) {}
  // Judging by this pack's use of memory, a pack of the lease's shape with more than `trials`
  // trials would not fit the device. At least 1.
  virtual void ReportCapacity(int64_t trials) {}
  virtual void CountEvaluation(double seconds) {}
  // `seconds`: from the request for the checkpoint until the session holds its bytes.
  virtual void CountCheckpoint(double seconds, int64_t bytes) {}
};

// Trains and evaluates packs on one device.
class PackRunner {
 public:
  virtual ~PackRunner() = default;

  // Runs the trials of the lease and emits their outcomes. Returns once every trial has an outcome
  // or is cancelled, or the lease is lost or drained. An error means that this machine cannot run
  // the trials that have no outcome; the caller then releases the lease.
  virtual absl::Status Run(const v1::Lease& lease, PackSession& session) = 0;

  // OK while the device works; after a fault that it cannot recover from, the reason and what to
  // do. Every later pack would fail, so the worker must end. For the caller of Run, between packs.
  virtual absl::Status device_status() const { return absl::OkStatus(); }

  // Device, software versions and the kernels of the latest pack. Any thread.
  virtual v1::Provenance provenance() const = 0;
  // The largest number of trials that it trains as one pack.
  virtual int32_t max_pack_size() const = 0;
};

struct PackRunnerOptions {
  // "cpu", "cuda:N" or "auto" (the first CUDA device, else the CPU).
  std::string device = "auto";
  // Threads of CPU kernels. 0 means one per usable CPU. Results do not depend on it.
  int32_t threads = 0;
  // Largest number of trials in a pack. 0 means 30 on CUDA and 1 on a CPU, where packing gains
  // nothing. Packs of a shape are smaller if memory holds fewer: the session remembers
  // ReportCapacity and outcomes that ran out of memory.
  int32_t max_pack_size = 0;
  // "auto", "fused" or "plain": selects this program's fused kernels or LibTorch's operations on a
  // CUDA device (training/pack_kernels.h).
  std::string kernels = "auto";
  // Python interpreter that computes users' modules; empty: their trials fail temporarily here.
  std::string python;
  // A module that does not answer for this time is ended.
  absl::Duration python_limit = absl::Minutes(10);
  // Of these modules, as PyTorch names it; "cuda" is this worker's GPU.
  std::string python_device = "cpu";
};

// Implemented in worker/training. INVALID_ARGUMENT: no such device (the message lists those
// present).
absl::StatusOr<std::unique_ptr<PackRunner>> CreatePackRunner(const PackRunnerOptions& options);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_PACK_SESSION_H_
