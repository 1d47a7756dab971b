// Adam over whole arenas (Kingma and Ba 2015, algorithm 1), gradient clipping included. One pass
// reads and writes each number once; separate tensor operations would take nine passes over memory.
#ifndef LENGTHWISE_MODELS_KERNELS_ADAM_H_
#define LENGTHWISE_MODELS_KERNELS_ADAM_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::kernels {

// Arenas of `count` members. Each array is [count, row_size] and contiguous.
struct AdamRows {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  float* first_moments = nullptr;
  float* second_moments = nullptr;
  // Scalars that change from step to step.
  const double* rates = nullptr;              // [count]: the learning rate over 1 - beta1^step
  const double* second_correction = nullptr;  // one number: 1 - beta2^step
  // [count]: factor on each member's gradients, applied first (clipping); null means 1.
  const float* factors = nullptr;
  int64_t count = 0;
  int64_t row_size = 0;
};

struct AdamConstants {
  float beta1 = 0;
  float beta2 = 0;
  // 1 - beta1 and 1 - beta2, computed in double precision: subtracting the float32 values would
  // leave only four correct digits.
  float rest1 = 0;
  float rest2 = 0;
  float epsilon = 0;
};

// Updates all members in place. Results do not depend on the number of threads, nor on a number's
// position in its row if row_size is a multiple of 16.
void AdamStep(const AdamRows& rows, const AdamConstants& constants,
              const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADAM_H_
