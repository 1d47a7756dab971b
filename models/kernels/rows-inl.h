// Products of attention's rows with a head's matrices, for the instruction set that is being
// compiled (hwy/foreach_target.h).
//
// Matrices are [dh, m]: their rows are features, padded with zeros to a multiple of kFeatures, and
// their columns are keys, padded to a multiple of a vector's lanes, so that no loop has a tail.
// Everything but soft-max is a multiplication and addition of a vector of keys with one feature's
// number.
#if defined(LENGTHWISE_MODELS_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LENGTHWISE_MODELS_KERNELS_ROWS_INL_H_
#undef LENGTHWISE_MODELS_KERNELS_ROWS_INL_H_
#else
#define LENGTHWISE_MODELS_KERNELS_ROWS_INL_H_
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

// Features that are summed in registers at once.
constexpr int64_t kFeatures = 8;

// A logit whose probability is 0.
constexpr float kMasked = -1e30F;

HWY_INLINE int64_t PaddedKeys(int64_t keys) { return (keys + kLanes - 1) / kLanes * kLanes; }

HWY_INLINE int64_t PaddedFeatures(int64_t features) {
  return (features + kFeatures - 1) / kFeatures * kFeatures;
}

// row[j] = sum_c weights[c] matrix[c, j] for `width` keys and `features` features, both padded;
// with kAdd, that is added to the row. (Functions of their own, because their pointers fill the
// registers.)
template <bool kAdd>
inline HWY_NOINLINE void Product(const float* weights, int64_t features, const float* matrix,
                                 int64_t stride, int64_t width, float* row) {
  const Floats d;
  for (int64_t c = 0; c < features; c += kFeatures) {
    const float* w = weights + c;
    const float* first = matrix + c * stride;
    const auto w0 = hn::Set(d, w[0]), w1 = hn::Set(d, w[1]);
    const auto w2 = hn::Set(d, w[2]), w3 = hn::Set(d, w[3]);
    const auto w4 = hn::Set(d, w[4]), w5 = hn::Set(d, w[5]);
    const auto w6 = hn::Set(d, w[6]), w7 = hn::Set(d, w[7]);
    const bool add = kAdd || c > 0;
    for (int64_t j = 0; j < width; j += kLanes) {
      const float* m = first + j;
      // Two chains, for half the latency.
      auto even = hn::Mul(w0, hn::LoadU(d, m));
      auto odd = hn::Mul(w1, hn::LoadU(d, m + stride));
      even = hn::MulAdd(w2, hn::LoadU(d, m + 2 * stride), even);
      odd = hn::MulAdd(w3, hn::LoadU(d, m + 3 * stride), odd);
      even = hn::MulAdd(w4, hn::LoadU(d, m + 4 * stride), even);
      odd = hn::MulAdd(w5, hn::LoadU(d, m + 5 * stride), odd);
      even = hn::MulAdd(w6, hn::LoadU(d, m + 6 * stride), even);
      odd = hn::MulAdd(w7, hn::LoadU(d, m + 7 * stride), odd);
      auto sum = hn::Add(even, odd);
      if (add) sum = hn::Add(sum, hn::LoadU(d, row + j));
      hn::StoreU(sum, d, row + j);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Sums of neighbouring lanes, those of `a` before those of `b`.
HWY_INLINE FloatVector PairSums(FloatVector a, FloatVector b) {
  const Floats d;
  return hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
}
#endif

// sums[0..7] = the sums over lanes of eight vectors.
HWY_INLINE void StoreSums(FloatVector v0, FloatVector v1, FloatVector v2, FloatVector v3,
                          FloatVector v4, FloatVector v5, FloatVector v6, FloatVector v7,
                          float* HWY_RESTRICT sums) {
#if HWY_TARGET == HWY_SCALAR
  const FloatVector vectors[] = {v0, v1, v2, v3, v4, v5, v6, v7};
  for (int64_t i = 0; i < 8; ++i) sums[i] = hn::GetLane(vectors[i]);
#else
  static_assert(kLanes == 4 || kLanes == 8 || kLanes == 16);
  const Floats d;
  const FloatVector low = PairSums(PairSums(v0, v1), PairSums(v2, v3));
  const FloatVector high = PairSums(PairSums(v4, v5), PairSums(v6, v7));
  if constexpr (kLanes == 4) {
    hn::StoreU(low, d, sums);
    hn::StoreU(high, d, sums + 4);
  } else if constexpr (kLanes == 8) {
    hn::StoreU(PairSums(low, high), d, sums);
  } else {
    const FloatVector pairs = PairSums(low, high);
    const hn::Half<Floats> half;
    hn::StoreU(hn::LowerHalf(half, PairSums(pairs, pairs)), half, sums);
  }
#endif
}

// sums[c] = sum_j row[j] matrix[c, j].
inline HWY_NOINLINE void Reduce(const float* row, const float* matrix, int64_t stride,
                                int64_t width, int64_t features, float* sums) {
  const Floats d;
  for (int64_t c = 0; c < features; c += kFeatures) {
    const float* first = matrix + c * stride;
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    auto s4 = hn::Zero(d), s5 = hn::Zero(d), s6 = hn::Zero(d), s7 = hn::Zero(d);
    for (int64_t j = 0; j < width; j += kLanes) {
      const float* m = first + j;
      const auto x = hn::LoadU(d, row + j);
      s0 = hn::MulAdd(x, hn::LoadU(d, m), s0);
      s1 = hn::MulAdd(x, hn::LoadU(d, m + stride), s1);
      s2 = hn::MulAdd(x, hn::LoadU(d, m + 2 * stride), s2);
      s3 = hn::MulAdd(x, hn::LoadU(d, m + 3 * stride), s3);
      s4 = hn::MulAdd(x, hn::LoadU(d, m + 4 * stride), s4);
      s5 = hn::MulAdd(x, hn::LoadU(d, m + 5 * stride), s5);
      s6 = hn::MulAdd(x, hn::LoadU(d, m + 6 * stride), s6);
      s7 = hn::MulAdd(x, hn::LoadU(d, m + 7 * stride), s7);
    }
    StoreSums(s0, s1, s2, s3, s4, s5, s6, s7, sums + c);
  }
}

// matrix[c, j] += sum_r weights[r, c] rows[r, j] over eight rows.
inline HWY_NOINLINE void AddOuterProducts(const float* weights, int64_t weight_stride,
                                          const float* rows, int64_t row_stride, int64_t features,
                                          int64_t width, float* matrix, int64_t stride) {
  const Floats d;
  for (int64_t j = 0; j < width; j += kLanes) {
    const float* r = rows + j;
    const auto r0 = hn::LoadU(d, r), r1 = hn::LoadU(d, r + row_stride);
    const auto r2 = hn::LoadU(d, r + 2 * row_stride), r3 = hn::LoadU(d, r + 3 * row_stride);
    const auto r4 = hn::LoadU(d, r + 4 * row_stride), r5 = hn::LoadU(d, r + 5 * row_stride);
    const auto r6 = hn::LoadU(d, r + 6 * row_stride), r7 = hn::LoadU(d, r + 7 * row_stride);
    for (int64_t c = 0; c < features; ++c) {
      const float* w = weights + c;
      float* m = matrix + c * stride + j;
      auto even = hn::MulAdd(r0, hn::Set(d, w[0]), hn::LoadU(d, m));
      auto odd = hn::Mul(r1, hn::Set(d, w[weight_stride]));
      even = hn::MulAdd(r2, hn::Set(d, w[2 * weight_stride]), even);
      odd = hn::MulAdd(r3, hn::Set(d, w[3 * weight_stride]), odd);
      even = hn::MulAdd(r4, hn::Set(d, w[4 * weight_stride]), even);
      odd = hn::MulAdd(r5, hn::Set(d, w[5 * weight_stride]), odd);
      even = hn::MulAdd(r6, hn::Set(d, w[6 * weight_stride]), even);
      odd = hn::MulAdd(r7, hn::Set(d, w[7 * weight_stride]), odd);
      hn::StoreU(hn::Add(even, odd), d, m);
    }
  }
}

// row += x, both of any length.
HWY_INLINE void AddRow(const float* x, int64_t length, float* row) {
  const Floats d;
  int64_t j = 0;
  for (; j + kLanes <= length; j += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, row + j), hn::LoadU(d, x + j)), d, row + j);
  }
  for (; j < length; ++j) row[j] += x[j];
}

// e^x for x at most about 88, to some 1e-7 of it; 0 below -87. x = k ln 2 + r with |r| <= ln 2 / 2,
// e^r by the polynomial of Cephes' expf. Half the instructions of Highway's, which is exact to the
// last bit.
HWY_INLINE FloatVector Exp(FloatVector x) {
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  // The last bits of this sum are k, because a float of its size has no fraction.
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
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -87.0F)), scaled);
}

struct RowSoftmax {
  float maximum;
  // Of exp(logit - maximum).
  float sum;
};

// Makes exp(logit - maximum) of the first `keys` logits of a row and 0 of the others.
HWY_INLINE RowSoftmax Exponentiate(int64_t keys, int64_t width, float* row) {
  const Floats d;
  for (int64_t j = keys; j < width; ++j) row[j] = kMasked;
  auto maximum = hn::LoadU(d, row);
  for (int64_t j = kLanes; j < width; j += kLanes) {
    maximum = hn::Max(maximum, hn::LoadU(d, row + j));
  }
  maximum = hn::MaxOfLanes(d, maximum);
  auto sum = hn::Zero(d);
  for (int64_t j = 0; j < width; j += kLanes) {
    const auto power = Exp(hn::Sub(hn::LoadU(d, row + j), maximum));
    sum = hn::Add(sum, power);
    hn::StoreU(power, d, row + j);
  }
  return {hn::GetLane(maximum), hn::GetLane(hn::SumOfLanes(d, sum))};
}

// From a row's logits and its products with the output's gradient: the probabilities p into
// `logits`, the logits' gradient p (product - delta) into `products`.
HWY_INLINE void DifferentiateSoftmax(float log_sum_exp, float delta, int64_t keys, int64_t width,
                                     float* HWY_RESTRICT logits, float* HWY_RESTRICT products) {
  const Floats d;
  for (int64_t j = keys; j < width; ++j) logits[j] = kMasked;
  const auto shift = hn::Set(d, log_sum_exp), mean = hn::Set(d, delta);
  for (int64_t j = 0; j < width; j += kLanes) {
    const auto p = Exp(hn::Sub(hn::LoadU(d, logits + j), shift));
    hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, products + j), mean)), d, products + j);
    hn::StoreU(p, d, logits + j);
  }
}

// A query's numbers: vectors of up to eight, which divide kFeatures.
using Few = hn::CappedTag<float, 8>;
constexpr int64_t kFewLanes = static_cast<int64_t>(hn::MaxLanes(Few()));

// to = scale (a + b) for padded features.
HWY_INLINE void AddAndScale(const float* a, const float* b, float scale, int64_t features,
                            float* to) {
  const Few d;
  const auto factor = hn::Set(d, scale);
  for (int64_t c = 0; c < features; c += kFewLanes) {
    hn::StoreU(hn::Mul(factor, hn::Add(hn::LoadU(d, a + c), hn::LoadU(d, b + c))), d, to + c);
  }
}

// sums += a for padded features.
HWY_INLINE void AddFeatures(const float* a, int64_t features, float* sums) {
  const Few d;
  for (int64_t c = 0; c < features; c += kFewLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c), hn::LoadU(d, a + c)), d, sums + c);
  }
}

// The sum of a[c] b[c].
HWY_INLINE float Dot(const float* a, const float* b, int64_t count) {
  const Few d;
  auto sums = hn::Zero(d);
  int64_t c = 0;
  for (; c + kFewLanes <= count; c += kFewLanes) {
    sums = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sums);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

// to = from; most heads have 8 numbers, for which a call costs more than the copy.
HWY_INLINE void CopyFeatures(const float* from, int64_t count, float* HWY_RESTRICT to) {
  const Few d;
  int64_t c = 0;
  for (; c + kFewLanes <= count; c += kFewLanes) hn::StoreU(hn::LoadU(d, from + c), d, to + c);
  for (; c < count; ++c) to[c] = from[c];
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
