// Adam over whole arenas (Kingma and Ba 2015, algorithm 1), clipping included: each number is read
// and written once, where separate operations would go through memory nine times.
#ifndef LENGTHWISE_MODELS_KERNELS_ADAM_H_
#define LENGTHWISE_MODELS_KERNELS_ADAM_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::kernels {

// Rows of `count` members, all [count, row_size] and contiguous.
struct AdamRows {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  float* first_moments = nullptr;
  float* second_moments = nullptr;
  // Numbers that change from step to step.
  const double* rates = nullptr;              // [count]: the learning rate over 1 - beta1^step
  const double* second_correction = nullptr;  // one number, 1 - beta2^step
  // [count]: what gradients are multiplied with before anything else; null for 1.
  const float* factors = nullptr;
  int64_t count = 0;
  int64_t row_size = 0;
};

struct AdamConstants {
  float beta1 = 0;
  float beta2 = 0;
  // 1 less these, which their float32 would give with four digits only.
  float rest1 = 0;
  float rest2 = 0;
  float epsilon = 0;
};

// The bits of a number do not depend on the number of threads, nor on its place in a row that is a
// multiple of 16 long.
void AdamStep(const AdamRows& rows, const AdamConstants& constants,
              const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADAM_H_
