// The second half of sums that many blocks of a GPU make together: each wrote its part, and these
// add the parts up in their order. `Launcher` is that of attention_launches.h.
#ifndef LENGTHWISE_MODELS_KERNELS_SUM_PARTS_INL_H_
#define LENGTHWISE_MODELS_KERNELS_SUM_PARTS_INL_H_

#include <cstdint>

#include "models/kernels/simt.h"

namespace lengthwise::kernels {

// A template, so that several sources may have it.
template <int kThreads>
LENGTHWISE_KERNEL void SumKernel(const float* parts, int64_t outer, int64_t count, int64_t size,
                                 float* sums) {
  const int64_t item = simt::Block() * kThreads + simt::Thread();
  if (item >= outer * size) return;
  const float* part = parts + item / size * count * size + item % size;
  float sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += part[k * size];
  sums[item] = sum;
}

// sums[o, s] = parts[o, 0, s] + parts[o, 1, s] + .. of parts [outer, count, size].
template <typename Launcher>
void LaunchSum(Launcher& launcher, const float* parts, int64_t outer, int64_t count, int64_t size,
               float* sums) {
  constexpr int kThreads = 128;
  launcher.Launch(&SumKernel<kThreads>, (outer * size + kThreads - 1) / kThreads, kThreads, 0,
                  parts, outer, count, size, sums);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_SUM_PARTS_INL_H_
