// The little of CUDA that this folder's device code is written in. nvcc makes CUDA of it. A C++
// compiler makes code of it that simt_emulator.h runs on the CPU, thread by thread, so that the
// very same kernels are tested where there is no GPU: against a reference, in any order of threads,
// and with every access to memory checked.
//
// Grids and blocks have one dimension, and a block's threads are a multiple of a warp's. What
// starts kernels is a template of a `Launcher`, which puts them on a GPU's stream
// (stream_launcher.h) or runs them in the emulation:
//
//   void Launch(void (*kernel)(Parameters...), int64_t blocks, int threads, int64_t shared_bytes,
//               const Parameters&... arguments);
#ifndef LENGTHWISE_MODELS_KERNELS_SIMT_H_
#define LENGTHWISE_MODELS_KERNELS_SIMT_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define LENGTHWISE_KERNEL __global__
#define LENGTHWISE_DEVICE __device__ __forceinline__
#define LENGTHWISE_EVERYWHERE __host__ __device__ __forceinline__
// Before a loop of few steps over an array that is to stay in registers.
#define LENGTHWISE_UNROLL _Pragma("unroll")
#else
#define LENGTHWISE_KERNEL inline
#define LENGTHWISE_DEVICE inline
#define LENGTHWISE_EVERYWHERE inline
#define LENGTHWISE_UNROLL
#endif

namespace lengthwise::kernels::simt {

constexpr int kWarp = 32;

// Numbers that are read or written at once; their address is a multiple of their size.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Several {
  T x[kCount];
};
using Float4 = Several<float, 4>;

#ifdef __CUDACC__

LENGTHWISE_DEVICE int Thread() { return static_cast<int>(threadIdx.x); }
LENGTHWISE_DEVICE int Threads() { return static_cast<int>(blockDim.x); }
LENGTHWISE_DEVICE int64_t Block() { return blockIdx.x; }

// Waits for all threads of the block. Every thread must come here.
LENGTHWISE_DEVICE void Barrier() { __syncthreads(); }

// Replaces each number by its sum with that of the thread whose place in the warp differs by
// `mask`. Every thread of the warp must come here.
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
LENGTHWISE_DEVICE void Store(const Several<T, kCount>& several, T* numbers) {
  *reinterpret_cast<Several<T, kCount>*>(numbers) = several;
}

extern __shared__ Float4 shared_memory[];

// The block's shared memory, array after array. Every thread takes the same arrays.
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

// What simt_emulator.cc does for the thread that it runs at the moment.
int Thread();
int Threads();
int64_t Block();
void Barrier();
void AddOther(int mask, float* numbers, int count);
float* TakeSharedArray(int number, int count);
void ReportOddAddress();

template <int kCount, typename T>
Several<T, kCount> Load(const T* numbers) {
  Several<T, kCount> result;
  if (reinterpret_cast<uintptr_t>(numbers) % sizeof(result) != 0) ReportOddAddress();
  memcpy(&result, numbers, sizeof(result));
  return result;
}
template <int kCount, typename T>
void Store(const Several<T, kCount>& several, T* numbers) {
  if (reinterpret_cast<uintptr_t>(numbers) % sizeof(several) != 0) ReportOddAddress();
  memcpy(numbers, &several, sizeof(several));
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

// Each number becomes its sum over the warp, the same bits in every thread.
template <int kCount>
LENGTHWISE_DEVICE void AddOverWarp(float (&numbers)[kCount]) {
  LENGTHWISE_UNROLL
  for (int mask = 1; mask < kWarp; mask *= 2) AddOther(mask, numbers);
}

}  // namespace lengthwise::kernels::simt

#endif  // LENGTHWISE_MODELS_KERNELS_SIMT_H_
