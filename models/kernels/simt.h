// The subset of CUDA in which this folder's device code is written. nvcc compiles it to CUDA. A C++
// compiler compiles it for simt_emulator.h, which runs it on the CPU, thread by thread. The same
// kernels are therefore tested without a GPU: against a reference, in any order of threads, and
// with every memory access checked.
//
// Grids and blocks have one dimension; a block has a multiple of a warp's threads. Functions that
// launch kernels are templates over a `Launcher`, which enqueues them on a GPU's stream
// (stream_launcher.h) or runs them in the emulator:
//
//   void Launch(void (*kernel)(Parameters...), int64_t blocks, int threads, int64_t shared_bytes,
//               const Parameters&... arguments);
#ifndef LENGTHWISE_MODELS_KERNELS_SIMT_H_
#define LENGTHWISE_MODELS_KERNELS_SIMT_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define LENGTHWISE_KERNEL __global__
// A kernel for blocks of `threads`, of which a multiprocessor has registers for `blocks` at once.
#define LENGTHWISE_KERNEL_FOR(threads, blocks) __global__ __launch_bounds__(threads, blocks)
#define LENGTHWISE_DEVICE __device__ __forceinline__
#define LENGTHWISE_EVERYWHERE __host__ __device__ __forceinline__
// Unrolls a short loop, so that the array it indexes stays in registers.
#define LENGTHWISE_UNROLL _Pragma("unroll")
#else
#define LENGTHWISE_KERNEL inline
#define LENGTHWISE_KERNEL_FOR(threads, blocks) inline
#define LENGTHWISE_DEVICE inline
#define LENGTHWISE_EVERYWHERE inline
#define LENGTHWISE_UNROLL
#endif

namespace lengthwise::kernels::simt {

constexpr int kWarp = 32;

// Numbers loaded at once. Their address must be a multiple of their total size.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Several {
  T x[kCount];
};
using Float4 = Several<float, 4>;

#ifdef __CUDACC__

LENGTHWISE_DEVICE int Thread() { return static_cast<int>(threadIdx.x); }
LENGTHWISE_DEVICE int Threads() { return static_cast<int>(blockDim.x); }
LENGTHWISE_DEVICE int64_t Block() { return blockIdx.x; }

// Waits for all threads of the block. Every thread must call it.
LENGTHWISE_DEVICE void Barrier() { __syncthreads(); }

// Adds to each number that of the thread whose lane differs by the bits of `mask` (butterfly
// exchange). Every thread of the warp must call it.
template <int kCount>
LENGTHWISE_DEVICE void AddOther(int mask, float (&numbers)[kCount]) {
  LENGTHWISE_UNROLL
  for (int k = 0; k < kCount; ++k) numbers[k] += __shfl_xor_sync(0xFFFFFFFFU, numbers[k], mask);
}

template <int kCount, typename T>
LENGTHWISE_DEVICE Several<T, kCount> Load(const T* numbers) {
  return *reinterpret_cast<const Several<T, kCount>*>(numbers);
}

template <int kCount, typename T>
LENGTHWISE_DEVICE void Store(const Several<T, kCount>& from, T* numbers) {
  *reinterpret_cast<Several<T, kCount>*>(numbers) = from;
}

// Begins to copy 16 bytes to shared memory, or to clear them if they are not `there`. Both
// addresses are multiples of 16, and `from` is valid in any case.
template <typename T>
LENGTHWISE_DEVICE void StartCopy(const T* from, bool there, T* to) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from),
                 "r"(there ? 16 : 0)
               : "memory");
}

// Waits for the copies that this thread began. Others see them after a barrier.
LENGTHWISE_DEVICE void WaitForCopies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

extern __shared__ Float4 shared_memory[];

// Hands out the block's shared memory, array after array. All threads must take the same arrays.
class SharedArrays {
 public:
  __device__ __forceinline__ SharedArrays() : next_(shared_memory[0].x) {}
  __device__ __forceinline__ float* Take(int count) {
    float* array = next_;
    next_ += (count + 3) / 4 * 4;
    return array;
  }

 private:
  float* next_;
};

#else

// Implemented by simt_emulator.cc for the thread that it is running.
int Thread();
int Threads();
int64_t Block();
void Barrier();
// What the lanes of a warp do together: once all of them have called it with the same `run`, it is
// called with their operands. It returns false if they do not match.
void Together(bool (*run)(void* const* lanes), void* operands);
void AddOther(int mask, float* numbers, int count);
float* TakeSharedArray(int number, int count);
void ReportOddAddress();
void StartCopy(const void* from, bool there, void* to);
void WaitForCopies();

template <int kCount, typename T>
Several<T, kCount> Load(const T* numbers) {
  Several<T, kCount> result;
  if (reinterpret_cast<uintptr_t>(numbers) % sizeof(result) != 0) ReportOddAddress();
  memcpy(&result, numbers, sizeof(result));
  return result;
}

template <int kCount, typename T>
void Store(const Several<T, kCount>& from, T* numbers) {
  if (reinterpret_cast<uintptr_t>(numbers) % sizeof(from) != 0) ReportOddAddress();
  memcpy(numbers, &from, sizeof(from));
}

template <int kCount>
void AddOther(int mask, float (&numbers)[kCount]) {
  AddOther(mask, numbers, kCount);
}

class SharedArrays {
 public:
  float* Take(int count) { return TakeSharedArray(taken_++, count); }

 private:
  int taken_ = 0;
};

#endif

// Replaces each number by its sum over the warp: the same bits in every thread.
template <int kCount>
LENGTHWISE_DEVICE void AddOverWarp(float (&numbers)[kCount]) {
  LENGTHWISE_UNROLL
  for (int mask = 1; mask < kWarp; mask *= 2) AddOther(mask, numbers);
}

}  // namespace lengthwise::kernels::simt

#endif  // LENGTHWISE_MODELS_KERNELS_SIMT_H_
