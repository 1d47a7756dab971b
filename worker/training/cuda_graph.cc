#include "worker/training/cuda_graph.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <exception>

#include "c10/core/DeviceGuard.h"
#include "c10/cuda/CUDACachingAllocator.h"
#include "c10/cuda/CUDAException.h"
#include "c10/cuda/CUDAStream.h"
#include "c10/util/Exception.h"

namespace lengthwise::worker::training {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Starts far above LibTorch's own pool ids, which count from 1.
c10::MempoolId_t NextPool() {
  static std::atomic<uint64_t> next{uint64_t{1} << 32};
  return {0, next++};
}

// While an instance lives, allocations for `stream` come from the pool. Replaces this part of
// LibTorch's CUDAGraph using only libc10_cuda, because libtorch_cuda is not linked: most machines
// lack its dependencies.
class AllocateToPool {
 public:
  AllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool, cudaStream_t stream)
      : device_(device), pool_(pool) {
    allocator::beginAllocateToPool(device, pool,
                                   [stream](cudaStream_t other) { return other == stream; });
  }
  ~AllocateToPool() { allocator::endAllocateToPool(device_, pool_); }
  AllocateToPool(const AllocateToPool&) = delete;
  AllocateToPool& operator=(const AllocateToPool&) = delete;

 private:
  const c10::DeviceIndex device_;
  const c10::MempoolId_t pool_;
};

class CudaGraph : public DeviceGraph {
 public:
  CudaGraph(const c10::Device& device, c10::MempoolId_t pool) : device_(device), pool_(pool) {}

  ~CudaGraph() override {
    if (executable_ != nullptr) C10_CUDA_CHECK_WARN(cudaGraphExecDestroy(executable_));
    // The allocator counts one use of the pool for each recording that began.
    if (began_) allocator::releasePool(device_.index(), pool_);
  }

  void Record(const std::function<void()>& work) override {
    const c10::DeviceGuard guard(device_);
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(device_.index());
    TORCH_CHECK(!began_, "a graph is recorded once");
    TORCH_CHECK(stream != c10::cuda::getDefaultCUDAStream(device_.index()),
                "the default stream cannot be recorded");
    cudaGraph_t graph = nullptr;
    std::exception_ptr problem;
    {
      const AllocateToPool allocate(device_.index(), pool_, stream);
      began_ = true;
      // Thread-local capture ignores other threads' CUDA calls. LibTorch's backward threads are
      // still recorded, because they use this stream.
      C10_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      try {
        work();
      } catch (...) {
        problem = std::current_exception();
      }
      // Ends the capture even after an error, because a stream left in capture mode is unusable.
      // The error of work() is more informative than the invalid recording that follows from it.
      const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
      if (problem != nullptr) {
        if (graph != nullptr) C10_CUDA_CHECK_WARN(cudaGraphDestroy(graph));
        static_cast<void>(cudaGetLastError());  // clears CUDA's error state
        std::rethrow_exception(problem);
      }
      C10_CUDA_CHECK(ended);
    }
    TORCH_CHECK(graph != nullptr, "the recording is not valid");
    const cudaError_t made = cudaGraphInstantiateWithFlags(
        &executable_, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
    C10_CUDA_CHECK_WARN(cudaGraphDestroy(graph));
    C10_CUDA_CHECK(made);
  }

  void Replay() override {
    TORCH_CHECK(executable_ != nullptr, "nothing was recorded");
    const c10::DeviceGuard guard(device_);
    C10_CUDA_CHECK(cudaGraphLaunch(executable_, c10::cuda::getCurrentCUDAStream(device_.index())));
  }

 private:
  const c10::Device device_;
  const c10::MempoolId_t pool_;
  bool began_ = false;
  cudaGraphExec_t executable_ = nullptr;
};

class CudaGraphPool : public GraphPool {
 public:
  explicit CudaGraphPool(const c10::Device& device) : device_(device), pool_(NextPool()) {}

  ~CudaGraphPool() override {
    if (held_) allocator::releasePool(device_.index(), pool_);
  }

  std::unique_ptr<DeviceGraph> MakeGraph() override {
    // Counts as a user of the pool, because a pool without users cannot be used again. Done at the
    // first recording, when CUDA is certainly initialized.
    if (!held_) allocator::createOrIncrefPool(device_.index(), pool_);
    held_ = true;
    return std::make_unique<CudaGraph>(device_, pool_);
  }

  void FreeUnusedMemory() override {
    const c10::DeviceGuard guard(device_);
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    allocator::emptyCache();
  }

 private:
  const c10::Device device_;
  const c10::MempoolId_t pool_;
  bool held_ = false;
};

}  // namespace

std::unique_ptr<GraphPool> MakeCudaGraphPool(const c10::Device& device) {
  return std::make_unique<CudaGraphPool>(device);
}

}  // namespace lengthwise::worker::training
