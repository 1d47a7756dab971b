// Sums over the columns of a row, compiled per instruction set (hwy/foreach_target.h).
#if defined(LENGTHWISE_MODELS_KERNELS_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LENGTHWISE_MODELS_KERNELS_COLUMNS_INL_H_
#undef LENGTHWISE_MODELS_KERNELS_COLUMNS_INL_H_
#else
#define LENGTHWISE_MODELS_KERNELS_COLUMNS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {

// Sums over [0, width): `term(c)` returns the vector of columns from c on, `last(c)` one column of
// the scalar tail.
template <typename Term, typename Last>
HWY_INLINE float SumColumns(int64_t width, const Term& term, const Last& last) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) sums = hn::Add(sums, term(c));
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; c < width; ++c) sum += last(c);
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
