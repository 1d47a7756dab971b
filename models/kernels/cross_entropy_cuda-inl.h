// CUDA kernels of rows_cuda.h for soft-max cross-entropy. A thread processes a whole row, because
// rows have few classes. `Launcher`: see simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_CUDA_INL_H_
#define LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_CUDA_INL_H_

#include <cstdint>

#include "models/kernels/cross_entropy.h"
#include "models/kernels/cross_entropy_row-inl.h"
#include "models/kernels/simt.h"
#include "models/kernels/sum_parts-inl.h"

namespace lengthwise::kernels {

// Threads, and so rows, per block; all of one member.
constexpr int kCrossEntropyThreads = 128;

inline int64_t CrossEntropyBlocks(const RowsShape& shape) {
  return (shape.rows + kCrossEntropyThreads - 1) / kCrossEntropyThreads;
}

struct CrossEntropyCall {
  RowsShape shape;
  CrossEntropyInputs inputs;
  int64_t blocks;  // per member
};

// Writes each block's sums to `parts` [P, blocks, 3]; LaunchSum adds them up.
LENGTHWISE_KERNEL void CrossEntropyKernel(CrossEntropyCall call, float* log_sum_exp, float* parts) {
  const int64_t member = simt::Block() / call.blocks;
  const int64_t place = simt::Block() % call.blocks * kCrossEntropyThreads + simt::Thread();
  simt::SharedArrays arrays;
  float* shared = arrays.Take(3 * kCrossEntropyThreads);
  float numbers[3] = {0, 0, 0};
  if (place < call.shape.rows) {
    const int64_t r = member * call.shape.rows + place, target = call.inputs.classes[r];
    const float* logits = call.inputs.logits + r * call.shape.width;
    const LogitsRow row = MeasureRow(logits, call.shape.width);
    log_sum_exp[r] = row.log_sum_exp;
    numbers[0] = row.log_sum_exp - logits[target];
    if (call.inputs.mask[r]) {
      numbers[1] = row.largest == target ? 1.0F : 0.0F;
      numbers[2] = 1;
    }
  }
  simt::AddOverWarp(numbers);
  for (int k = 0; k < 3; ++k) shared[3 * simt::Thread() + k] = numbers[k];
  simt::Barrier();
  if (simt::Thread() >= 3) return;
  float sum = 0;
  for (int warp = 0; warp < kCrossEntropyThreads; warp += simt::kWarp) {
    sum += shared[3 * warp + simt::Thread()];
  }
  parts[3 * simt::Block() + simt::Thread()] = sum;
}

LENGTHWISE_KERNEL void CrossEntropyBackwardKernel(CrossEntropyCall call, const float* log_sum_exp,
                                                  const float* sum_gradients,
                                                  float* logits_gradient) {
  const int64_t member = simt::Block() / call.blocks;
  const int64_t place = simt::Block() % call.blocks * kCrossEntropyThreads + simt::Thread();
  if (place >= call.shape.rows) return;
  const int64_t r = member * call.shape.rows + place;
  DifferentiateLogits(call.inputs.logits + r * call.shape.width, call.shape.width,
                      call.inputs.classes[r], log_sum_exp[r], sum_gradients[member],
                      logits_gradient + r * call.shape.width);
}

template <typename Launcher>
void LaunchCrossEntropy(Launcher& launcher, const RowsShape& shape,
                        const CrossEntropyInputs& inputs, const CrossEntropyResult& result,
                        float* workspace) {
  const CrossEntropyCall call = {shape, inputs, CrossEntropyBlocks(shape)};
  constexpr int64_t kSharedBytes = 3 * kCrossEntropyThreads * sizeof(float);
  launcher.Launch(&CrossEntropyKernel, shape.members * call.blocks, kCrossEntropyThreads,
                  kSharedBytes, call, result.log_sum_exp, workspace);
  LaunchSum(launcher, workspace, shape.members, call.blocks, 3, result.sums);
}

template <typename Launcher>
void LaunchCrossEntropyBackward(Launcher& launcher, const RowsShape& shape,
                                const CrossEntropyInputs& inputs, const float* log_sum_exp,
                                const float* sum_gradients, float* logits_gradient) {
  const CrossEntropyCall call = {shape, inputs, CrossEntropyBlocks(shape)};
  launcher.Launch(&CrossEntropyBackwardKernel, shape.members * call.blocks, kCrossEntropyThreads, 0,
                  call, log_sum_exp, sum_gradients, logits_gradient);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_CUDA_INL_H_
