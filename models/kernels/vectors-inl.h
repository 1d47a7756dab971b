// Vector type and helpers of kernels, compiled per instruction set (hwy/foreach_target.h).
#if defined(LENGTHWISE_MODELS_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LENGTHWISE_MODELS_KERNELS_VECTORS_INL_H_
#undef LENGTHWISE_MODELS_KERNELS_VECTORS_INL_H_
#else
#define LENGTHWISE_MODELS_KERNELS_VECTORS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

// sums += x, for one vector.
HWY_INLINE void AddTo(FloatVector x, float* sums) {
  const Floats d;
  hn::StoreU(hn::Add(hn::LoadU(d, sums), x), d, sums);
}

// sums += x, for any length.
HWY_INLINE void AddNumbers(const float* x, int64_t count, float* HWY_RESTRICT sums) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    AddTo(hn::LoadU(d, x + i), sums + i);
  }
  for (; i < count; ++i) sums[i] += x[i];
}

// e^x for x up to about 88, with a relative error of some 1e-7; 0 below -87; NaN propagates. x = k
// ln 2 + r with |r| <= ln 2 / 2, and e^r by the polynomial of Cephes' expf. Takes half the
// instructions of Highway's Exp, which is accurate to the last bit.
HWY_INLINE FloatVector Exp(FloatVector x) {
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  // Adding 1.5 * 2^23 leaves k in the lowest bits, because a float of that size has no fraction.
  const auto magic = hn::Set(d, 0x1.8p23F);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), magic);
  const auto k = hn::Sub(shifted, magic);
  const auto r = hn::NegMulAdd(k, hn::Set(d, 0.693147181F), x);
  const auto r2 = hn::Mul(r, r);
  const auto p01 = hn::MulAdd(r, hn::Set(d, 1.6666665459e-1F), hn::Set(d, 5.0000001201e-1F));
  const auto p23 = hn::MulAdd(r, hn::Set(d, 8.3334519073e-3F), hn::Set(d, 4.1665795894e-2F));
  const auto p45 = hn::MulAdd(r, hn::Set(d, 1.9875691500e-4F), hn::Set(d, 1.3981999507e-3F));
  const auto p = hn::MulAdd(hn::MulAdd(p45, r2, p23), r2, p01);
  const auto power = hn::MulAdd(p, r2, hn::Add(r, hn::Set(d, 1.0F)));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
  const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(integers, power), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0F)), scaled);
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
