#include "models/kernels/adam.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/adam.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {

// Updates elements [first, end) of the arenas, all of one member. The scalar tail uses fma as the
// vectors do, so that both round alike.
void UpdateNumbers(const AdamRows& rows, const AdamConstants& constants, float factor, float rate,
                   float correction, int64_t first, int64_t end) {
  const Floats d;
  const auto factors = hn::Set(d, factor), rates = hn::Set(d, rate),
             corrections = hn::Set(d, correction), epsilons = hn::Set(d, constants.epsilon),
             beta1 = hn::Set(d, constants.beta1), beta2 = hn::Set(d, constants.beta2),
             rest1 = hn::Set(d, constants.rest1), rest2 = hn::Set(d, constants.rest2);
  int64_t i = first;
  for (; i + kLanes <= end; i += kLanes) {
    const auto gradient = hn::Mul(factors, hn::LoadU(d, rows.gradients + i));
    const auto mean =
        hn::MulAdd(rest1, gradient, hn::Mul(beta1, hn::LoadU(d, rows.first_moments + i)));
    const auto square = hn::MulAdd(hn::Mul(rest2, gradient), gradient,
                                   hn::Mul(beta2, hn::LoadU(d, rows.second_moments + i)));
    hn::StoreU(mean, d, rows.first_moments + i);
    hn::StoreU(square, d, rows.second_moments + i);
    const auto root = hn::Add(hn::Sqrt(hn::Div(square, corrections)), epsilons);
    hn::StoreU(hn::NegMulAdd(rates, hn::Div(mean, root), hn::LoadU(d, rows.parameters + i)), d,
               rows.parameters + i);
  }
  for (; i < end; ++i) {
    const float gradient = factor * rows.gradients[i];
    float& mean = rows.first_moments[i];
    float& square = rows.second_moments[i];
    mean = std::fma(constants.rest1, gradient, constants.beta1 * mean);
    square = std::fma(constants.rest2 * gradient, gradient, constants.beta2 * square);
    const float root = std::sqrt(square / correction) + constants.epsilon;
    rows.parameters[i] = std::fma(-rate, mean / root, rows.parameters[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {
namespace {

// Elements per unit of work; a multiple of every vector length, so that only a row's end has a
// scalar tail.
constexpr int64_t kChunk = 8192;

}  // namespace

HWY_EXPORT(UpdateNumbers);

void AdamStep(const AdamRows& rows, const AdamConstants& constants,
              const ParallelFor& parallel_for) {
  const int64_t chunks = (rows.row_size + kChunk - 1) / kChunk;
  parallel_for(rows.count * chunks, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t member = unit / chunks, first = unit % chunks * kChunk;
      const int64_t row = member * rows.row_size;
      HWY_DYNAMIC_DISPATCH(UpdateNumbers)
      (rows, constants, rows.factors == nullptr ? 1.0F : rows.factors[member],
       static_cast<float>(rows.rates[member]), static_cast<float>(*rows.second_correction),
       row + first, row + std::min(first + kChunk, rows.row_size));
    }
  });
}

}  // namespace lengthwise::kernels
#endif
