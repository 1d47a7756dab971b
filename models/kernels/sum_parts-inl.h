// Second pass of sums over many blocks of a GPU: adds up the blocks' partial sums, in an order that
// depends on their number alone. `Launcher`: see simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_SUM_PARTS_INL_H_
#define LENGTHWISE_MODELS_KERNELS_SUM_PARTS_INL_H_

#include <cstdint>

#include "models/kernels/simt.h"

namespace lengthwise::kernels {

// A block computes kWarp sums. Its warps split the parts among themselves, to shorten the chain of
// dependent additions. A template, so that several sources may define it.
template <int kWarps>
LENGTHWISE_KERNEL void SumKernel(const float* parts, int64_t outer, int64_t count, int64_t size,
                                 float* sums) {
  const int lane = simt::Thread() % simt::kWarp, warp = simt::Thread() / simt::kWarp;
  const int64_t item = simt::Block() * simt::kWarp + lane;
  const bool there = item < outer * size;
  simt::SharedArrays arrays;
  float* shared = arrays.Take(kWarps * simt::kWarp);
  float sum = 0;
  if (there) {
    const float* part = parts + item / size * count * size + item % size;
    for (int64_t k = warp; k < count; k += kWarps) sum += part[k * size];
  }
  shared[simt::Thread()] = sum;
  simt::Barrier();
  if (warp != 0 || !there) return;
  for (int w = 1; w < kWarps; ++w) sum += shared[w * simt::kWarp + lane];
  sums[item] = sum;
}

// sums[o, s] = parts[o, 0, s] + parts[o, 1, s] + ... for parts [outer, count, size].
template <typename Launcher>
void LaunchSum(Launcher& launcher, const float* parts, int64_t outer, int64_t count, int64_t size,
               float* sums) {
  constexpr int kWarps = 8, kThreads = kWarps * simt::kWarp;
  launcher.Launch(&SumKernel<kWarps>, (outer * size + simt::kWarp - 1) / simt::kWarp, kThreads,
                  int64_t{sizeof(float)} * kThreads, parts, outer, count, size, sums);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_SUM_PARTS_INL_H_
