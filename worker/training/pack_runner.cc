// Implements CreatePackRunner of worker/pack_session.h.
#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/python_network/process.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "specification/expand.h"
#include "worker/pack_session.h"
#include "worker/training/blueprint.h"
#include "worker/training/core_sharing.h"
#include "worker/training/device.h"
#include "worker/training/pack_kernels.h"
#include "worker/training/pack_run.h"

namespace lengthwise::worker {
namespace {

constexpr int32_t kCudaPackSize = 30;
constexpr int32_t kCpuPackSize = 1;

class LeaseRunner : public PackRunner {
 public:
  LeaseRunner(training::Device device, int32_t max_pack_size, const std::string& kernels,
              std::string modules)
      : device_(std::move(device)),
        max_pack_size_(max_pack_size),
        mode_(kernels),
        kernels_(device_, {.mode = kernels}),
        modules_(std::move(modules)) {
    // A single thread never waits for others.
    if (device_.threads > 1) monitor_.emplace(device_.threads, LogSharing);
  }

  absl::Status Run(const v1::Lease& lease, PackSession& session) override {
    training::PrepareThread(device_);
    // The server leases trials that can share a pack; others would run one after another.
    std::map<std::string, std::vector<int64_t>> packs;
    for (int i = 0; i < lease.trials_size(); ++i) {
      packs[specification::PackKey(lease.trials(i).specification())].push_back(i);
    }
    for (const auto& [key, trials] : packs) {
      ASSIGN_OR_RETURN(const training::PackRun::End end, RunPack(lease, trials, session));
      if (end != training::PackRun::End::kComplete) break;
    }
    return absl::OkStatus();
  }

  absl::Status device_status() const override { return device_status_; }

  v1::Provenance provenance() const override {
    v1::Provenance provenance = device_.provenance;
    std::string kernels = kernels_.summary();
    if (!modules_.empty()) {
      absl::StrAppend(&kernels, kernels.empty() ? "" : "; ", "networks of users: ", modules_);
    }
    provenance.set_kernels(std::move(kernels));
    return provenance;
  }
  int32_t max_pack_size() const override { return max_pack_size_; }

 private:
  absl::StatusOr<training::PackRun::End> RunPack(const v1::Lease& lease,
                                                 const std::vector<int64_t>& trials,
                                                 PackSession& session) {
    training::PackRun run(lease, trials, device_, session,
                          monitor_.has_value() ? &*monitor_ : nullptr, &kernels_);
    // LibTorch and memory allocation throw. Every exception counts as temporary: mistakes in the
    // trial itself were found before, without exceptions, so a smaller pack, another worker or a
    // later attempt may succeed.
    try {
      return run.Run();
    } catch (const models::NetworkError& e) {
      run.LogToUnfinished(v1::LogLine::ERROR, e.what());
      run.FailUnfinished(
          e.permanent() ? v1::Outcome::FAILED_PERMANENTLY : v1::Outcome::FAILED_TEMPORARILY,
          training::FirstLine(e.what()));
      return training::PackRun::End::kComplete;
    } catch (const std::exception& e) {
      // The trials' logs get the full text, to find the cause.
      run.LogToUnfinished(v1::LogLine::ERROR, e.what());
      if (training::IsDeviceLost(e)) return device_status_ = DeviceLost(e);
      if (training::IsLibraryMissing(e))
        return absl::FailedPreconditionError(training::FirstLine(e.what()));
      run.FailUnfinished(
          training::IsOutOfMemory(e) ? v1::Outcome::OUT_OF_MEMORY : v1::Outcome::FAILED_TEMPORARILY,
          training::FirstLine(e.what()));
      return training::PackRun::End::kComplete;
    }
  }

  // The trials do not fail, because another worker's GPU, or its kernels, may run them; the
  // server's limit of lost workers ends a trial whose kernels fault everywhere.
  absl::Status DeviceLost(const std::exception& e) const {
    return absl::UnavailableError(absl::StrCat(
        "the GPU of this worker is lost to it: ", training::FirstLine(e.what()),
        mode_ == "plain"
            ? "; start the worker again, and if this repeats, look for the GPU's errors in the "
              "kernel's log (dmesg, lines with Xid)"
            : "; start the worker again, and if this repeats, with --kernels plain"));
  }

  static void LogSharing(bool shared, double waited_fraction) {
    platform::LogInfo(
        shared ? absl::StrCat("other programs use this worker's cores (its threads waited ",
                              static_cast<int>(100 * waited_fraction + 0.5),
                              " % of the time for one): from now on its threads sleep while they "
                              "wait for each other, and as many train as make the most steps")
               : "this worker's threads find their cores free again, and spin for a while when "
                 "they wait for each other");
  }

  const training::Device device_;
  const int32_t max_pack_size_;
  const std::string mode_;
  training::PackKernels kernels_;
  // What computes users' modules.
  const std::string modules_;
  // Of the training thread, which is the caller's.
  absl::Status device_status_;
  std::optional<training::CoreSharingMonitor> monitor_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PackRunner>> CreatePackRunner(const PackRunnerOptions& options) {
  ASSIGN_OR_RETURN(training::Device device, training::OpenDevice(options.device, options.threads));
  device.python = options.python;
  device.python_limit = options.python_limit;
  device.python_device = options.python_device;
  // "cuda" is the worker's own GPU, as in --device.
  if (device.cuda && device.python_device == "cuda") {
    absl::StrAppend(&device.python_device, ":", device.index);
  }
  if (!device.warning.empty()) {
    platform::LogWarning(device.cuda ? "" : "--device auto takes the CPU: ", device.warning);
  }
  std::string modules;
  if (!options.python.empty()) {
    const absl::StatusOr<std::string> found =
        models::DescribeInterpreter(options.python, device.python_device);
    modules = found.value_or("");
    platform::LogInfo("networks of users: ",
                      found.ok() ? *found : std::string(found.status().message()));
  }
  int32_t max_pack_size = options.max_pack_size;
  if (max_pack_size == 0) max_pack_size = device.cuda ? kCudaPackSize : kCpuPackSize;
  if (!device.cuda && options.kernels == "plain") {
    platform::LogWarning(
        "--kernels plain is for CUDA devices: a CPU always uses this program's own kernels");
  }
  return std::make_unique<LeaseRunner>(std::move(device), max_pack_size, options.kernels,
                                       std::move(modules));
}

}  // namespace lengthwise::worker
