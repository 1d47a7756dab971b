// Formulas of cross_entropy.h for one row of logits, shared by CPU and GPU.
#ifndef LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_ROW_INL_H_
#define LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_ROW_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/simt.h"

namespace lengthwise::kernels {

// Index of the largest logit, the first of several, and log sum exp of the row.
struct LogitsRow {
  int64_t largest = 0;
  float log_sum_exp = 0;
};

LENGTHWISE_EVERYWHERE LogitsRow MeasureRow(const float* logits, int64_t width) {
  LogitsRow row;
  for (int64_t c = 1; c < width; ++c) {
    if (logits[c] > logits[row.largest]) row.largest = c;
  }
  const float largest = logits[row.largest];
  float sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += expf(logits[c] - largest);
  row.log_sum_exp = largest + logf(sum);
  return row;
}

LENGTHWISE_EVERYWHERE void DifferentiateLogits(const float* logits, int64_t width, int64_t target,
                                               float log_sum_exp, float sum_gradient,
                                               float* gradient) {
  for (int64_t c = 0; c < width; ++c) {
    const float probability = expf(logits[c] - log_sum_exp);
    gradient[c] = sum_gradient * (c == target ? probability - 1 : probability);
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_ROW_INL_H_
