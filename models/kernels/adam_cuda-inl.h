// CUDA kernel of adam_cuda.cu, one thread per parameter. `Launcher`: see simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_INL_H_
#define LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/adam.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels {

constexpr int kAdamThreads = 256;

// Each member has `blocks` blocks, so that all threads of a block share one learning rate.
LENGTHWISE_KERNEL void AdamKernel(AdamRows rows, AdamConstants constants, int64_t blocks) {
  const int64_t member = simt::Block() / blocks;
  const int64_t column = simt::Block() % blocks * kAdamThreads + simt::Thread();
  if (column >= rows.row_size) return;
  const int64_t i = member * rows.row_size + column;
  const float factor = rows.factors == nullptr ? 1.0F : rows.factors[member];
  const float gradient = factor * rows.gradients[i];
  const float first = constants.beta1 * rows.first_moments[i] + constants.rest1 * gradient;
  const float second =
      constants.beta2 * rows.second_moments[i] + constants.rest2 * gradient * gradient;
  rows.first_moments[i] = first;
  rows.second_moments[i] = second;
  const float root =
      sqrtf(second / static_cast<float>(*rows.second_correction)) + constants.epsilon;
  rows.parameters[i] -= static_cast<float>(rows.rates[member]) * (first / root);
}

template <typename Launcher>
void LaunchAdam(Launcher& launcher, const AdamRows& rows, const AdamConstants& constants) {
  const int64_t blocks = (rows.row_size + kAdamThreads - 1) / kAdamThreads;
  launcher.Launch(&AdamKernel, rows.count * blocks, kAdamThreads, 0, rows, constants, blocks);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_INL_H_
