// Products of attention, compiled per instruction set (hwy/foreach_target.h).
//
// Data layouts:
// - *Panel* [features, kLanes]: kLanes queries of one sequence and head, one per vector lane. A
//   panel meets kEight keys at a time. Each product multiplies a vector by one key's number in all
//   lanes, so that logits, probabilities and sums of kLanes queries need no horizontal sum.
// - *Rows* [tokens, features]: keys, or any other data with dh numbers a token.
// - *Octets* [keys / 8, features, 8]: the same feature of eight keys is adjacent.
// - *Pairs* [queries / 2, features, 2]: the same feature of two neighbouring queries is adjacent.
//   Sums over queries, which are lanes of panels, use vectors of features instead, two queries at a
//   time. Two adjacent numbers of a panel are then the factors of a vector of any width.
//
// Zeros pad keys and features to kEight, and panels to kLanes.
#if defined(LENGTHWISE_MODELS_KERNELS_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LENGTHWISE_MODELS_KERNELS_PANELS_INL_H_
#undef LENGTHWISE_MODELS_KERNELS_PANELS_INL_H_
#else
#define LENGTHWISE_MODELS_KERNELS_PANELS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "models/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {

// Sums kept in registers: enough independent chains to keep two multiply-add units busy.
constexpr int64_t kEight = 8;

HWY_INLINE int64_t RoundUp(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

struct Eight {
  FloatVector v0, v1, v2, v3, v4, v5, v6, v7;
};

HWY_INLINE Eight Zeros() {
  const Floats d;
  const auto zero = hn::Zero(d);
  return {zero, zero, zero, zero, zero, zero, zero, zero};
}

HWY_INLINE Eight LoadEight(const float* from, int64_t stride) {
  const Floats d;
  return {hn::LoadU(d, from),
          hn::LoadU(d, from + stride),
          hn::LoadU(d, from + 2 * stride),
          hn::LoadU(d, from + 3 * stride),
          hn::LoadU(d, from + 4 * stride),
          hn::LoadU(d, from + 5 * stride),
          hn::LoadU(d, from + 6 * stride),
          hn::LoadU(d, from + 7 * stride)};
}

HWY_INLINE void StoreEight(const Eight& x, int64_t stride, float* to) {
  const Floats d;
  hn::StoreU(x.v0, d, to);
  hn::StoreU(x.v1, d, to + stride);
  hn::StoreU(x.v2, d, to + 2 * stride);
  hn::StoreU(x.v3, d, to + 3 * stride);
  hn::StoreU(x.v4, d, to + 4 * stride);
  hn::StoreU(x.v5, d, to + 5 * stride);
  hn::StoreU(x.v6, d, to + 6 * stride);
  hn::StoreU(x.v7, d, to + 7 * stride);
}

// Returns f(x_t, t) for each t.
template <typename Function>
HWY_INLINE Eight Apply(const Function& f, const Eight& x) {
  return {f(x.v0, 0), f(x.v1, 1), f(x.v2, 2), f(x.v3, 3),
          f(x.v4, 4), f(x.v5, 5), f(x.v6, 6), f(x.v7, 7)};
}

// sums_t + sum_k x_k y[k, t]. Vectors x_k are `x_stride` apart; numbers y[k, t] are `y_stride`
// apart in k and adjacent in t.
HWY_INLINE Eight AddProducts(int64_t count, const float* x, int64_t x_stride, const float* y,
                             int64_t y_stride, const Eight& sums) {
  const Floats d;
  // Local variables: GCC would keep a struct in memory.
  auto s0 = sums.v0, s1 = sums.v1, s2 = sums.v2, s3 = sums.v3;
  auto s4 = sums.v4, s5 = sums.v5, s6 = sums.v6, s7 = sums.v7;
  for (int64_t k = 0; k < count; ++k, y += y_stride) {
    const auto x_k = hn::LoadU(d, x + k * x_stride);
    s0 = hn::MulAdd(x_k, hn::Set(d, *y), s0);
    s1 = hn::MulAdd(x_k, hn::Set(d, y[1]), s1);
    s2 = hn::MulAdd(x_k, hn::Set(d, y[2]), s2);
    s3 = hn::MulAdd(x_k, hn::Set(d, y[3]), s3);
    s4 = hn::MulAdd(x_k, hn::Set(d, y[4]), s4);
    s5 = hn::MulAdd(x_k, hn::Set(d, y[5]), s5);
    s6 = hn::MulAdd(x_k, hn::Set(d, y[6]), s6);
    s7 = hn::MulAdd(x_k, hn::Set(d, y[7]), s7);
  }
  return {s0, s1, s2, s3, s4, s5, s6, s7};
}

// As above with vectors y[k, t], `y_stride` apart in k and `stride` in t.
HWY_INLINE Eight AddVectorProducts(int64_t count, const float* x, int64_t x_stride, const float* y,
                                   int64_t y_stride, int64_t stride, const Eight& sums) {
  const Floats d;
  // Local variables: GCC would keep a struct in memory.
  auto s0 = sums.v0, s1 = sums.v1, s2 = sums.v2, s3 = sums.v3;
  auto s4 = sums.v4, s5 = sums.v5, s6 = sums.v6, s7 = sums.v7;
  for (int64_t k = 0; k < count; ++k, y += y_stride) {
    const auto x_k = hn::LoadU(d, x + k * x_stride);
    s0 = hn::MulAdd(x_k, hn::LoadU(d, y), s0);
    s1 = hn::MulAdd(x_k, hn::LoadU(d, y + stride), s1);
    s2 = hn::MulAdd(x_k, hn::LoadU(d, y + 2 * stride), s2);
    s3 = hn::MulAdd(x_k, hn::LoadU(d, y + 3 * stride), s3);
    s4 = hn::MulAdd(x_k, hn::LoadU(d, y + 4 * stride), s4);
    s5 = hn::MulAdd(x_k, hn::LoadU(d, y + 5 * stride), s5);
    s6 = hn::MulAdd(x_k, hn::LoadU(d, y + 6 * stride), s6);
    s7 = hn::MulAdd(x_k, hn::LoadU(d, y + 7 * stride), s7);
  }
  return {s0, s1, s2, s3, s4, s5, s6, s7};
}

// sum_t x_t v_t, where v_t is the vector at vectors + t stride.
HWY_INLINE FloatVector SumOfProducts(const Eight& x, const float* vectors, int64_t stride) {
  const Floats d;
  // Two chains of additions halve the latency.
  auto even = hn::Mul(x.v0, hn::LoadU(d, vectors));
  auto odd = hn::Mul(x.v1, hn::LoadU(d, vectors + stride));
  even = hn::MulAdd(x.v2, hn::LoadU(d, vectors + 2 * stride), even);
  odd = hn::MulAdd(x.v3, hn::LoadU(d, vectors + 3 * stride), odd);
  even = hn::MulAdd(x.v4, hn::LoadU(d, vectors + 4 * stride), even);
  odd = hn::MulAdd(x.v5, hn::LoadU(d, vectors + 5 * stride), odd);
  even = hn::MulAdd(x.v6, hn::LoadU(d, vectors + 6 * stride), even);
  odd = hn::MulAdd(x.v7, hn::LoadU(d, vectors + 7 * stride), odd);
  return hn::Add(even, odd);
}

HWY_INLINE FloatVector Sum(const Eight& x) {
  return hn::Add(hn::Add(hn::Add(x.v0, x.v1), hn::Add(x.v2, x.v3)),
                 hn::Add(hn::Add(x.v4, x.v5), hn::Add(x.v6, x.v7)));
}

HWY_INLINE FloatVector Maximum(const Eight& x) {
  return hn::Max(hn::Max(hn::Max(x.v0, x.v1), hn::Max(x.v2, x.v3)),
                 hn::Max(hn::Max(x.v4, x.v5), hn::Max(x.v6, x.v7)));
}

// Products of a panel with the eight keys of an octet, one vector per key.
HWY_INLINE Eight Scores(const float* panel, int64_t head_size, const float* octet) {
  return AddProducts(head_size, panel, kLanes, octet, kEight, Zeros());
}

// mixed[c] += sum_j weights[j] rows[j, c] over `keys` keys and padded features. `weights` and
// `mixed` are arrays of vectors.
HWY_INLINE void AddMixed(const float* weights, const float* rows, int64_t keys, int64_t features,
                         float* mixed) {
  for (int64_t c = 0; c < features; c += kEight) {
    const Eight sums = LoadEight(mixed + c * kLanes, kLanes);
    StoreEight(AddProducts(keys, weights, kLanes, rows + c, features, sums), kLanes,
               mixed + c * kLanes);
  }
}

// Queries per pair; one if a vector has a single lane.
#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kPair = 1;
HWY_INLINE FloatVector PairOf(const float* numbers) { return hn::Set(Floats(), *numbers); }
#else
constexpr int64_t kPair = 2;
// Repeats two adjacent numbers over the vector.
HWY_INLINE FloatVector PairOf(const float* numbers) {
  const Floats d;
  const hn::Repartition<double, Floats> pairs;
  double pair;
  std::memcpy(&pair, numbers, sizeof(pair));
  return hn::BitCast(d, hn::Set(pairs, pair));
}
#endif

// sums[t, c, 0] + sums[t, c, 1] += sum_i weights[t, i] queries[i, c] for kEight keys t and `count`
// lanes i. `pairs` holds these queries.
HWY_INLINE void AddOuterProducts(const float* weights, const float* pairs, int64_t count,
                                 int64_t features, float* sums) {
  const Floats d;
  const int64_t width = kPair * features;
  for (int64_t c = 0; c < width; c += kLanes) {
    const Eight before = LoadEight(sums + c, width);
    auto s0 = before.v0, s1 = before.v1, s2 = before.v2, s3 = before.v3;
    auto s4 = before.v4, s5 = before.v5, s6 = before.v6, s7 = before.v7;
    const float *x = pairs + c, *w = weights;
    for (int64_t i = 0; i < count; i += kPair, x += width, w += kPair) {
      const auto x_k = hn::LoadU(d, x);
      s0 = hn::MulAdd(x_k, PairOf(w), s0);
      s1 = hn::MulAdd(x_k, PairOf(w + kLanes), s1);
      s2 = hn::MulAdd(x_k, PairOf(w + 2 * kLanes), s2);
      s3 = hn::MulAdd(x_k, PairOf(w + 3 * kLanes), s3);
      s4 = hn::MulAdd(x_k, PairOf(w + 4 * kLanes), s4);
      s5 = hn::MulAdd(x_k, PairOf(w + 5 * kLanes), s5);
      s6 = hn::MulAdd(x_k, PairOf(w + 6 * kLanes), s6);
      s7 = hn::MulAdd(x_k, PairOf(w + 7 * kLanes), s7);
    }
    StoreEight({s0, s1, s2, s3, s4, s5, s6, s7}, width, sums + c);
  }
}

#if HWY_TARGET == HWY_SCALAR
// pair[c] = row[c] + bias[c].
HWY_INLINE void MakePair(const float* row, const float* bias, int64_t features, float* pair) {
  for (int64_t c = 0; c < features; ++c) pair[c] = row[c] + bias[c];
}

// row[c] = scale sums[c].
HWY_INLINE void AddPair(const float* sums, float scale, int64_t features, float* row) {
  for (int64_t c = 0; c < features; ++c) row[c] = scale * sums[c];
}
#else
// Four adjacent features: padded rows have a multiple of four.
using Four = hn::FixedTag<float, 4>;

// Interleaves two rows: pair[c, r] = rows[r, c] + bias[c].
HWY_INLINE void MakePair(const float* rows, const float* bias, int64_t features, float* pair) {
  const Four d;
  for (int64_t c = 0; c < features; c += 4) {
    const auto add = hn::LoadU(d, bias + c);
    const auto first = hn::Add(hn::LoadU(d, rows + c), add);
    const auto second = hn::Add(hn::LoadU(d, rows + features + c), add);
    hn::StoreU(hn::InterleaveLower(d, first, second), d, pair + 2 * c);
    hn::StoreU(hn::InterleaveUpper(d, first, second), d, pair + 2 * c + 4);
  }
}

// row[c] = scale (sums[c, 0] + sums[c, 1]).
HWY_INLINE void AddPair(const float* sums, float scale, int64_t features, float* row) {
  const Four d;
  const auto factor = hn::Set(d, scale);
  for (int64_t c = 0; c < features; c += 4) {
    const auto low = hn::LoadU(d, sums + 2 * c), high = hn::LoadU(d, sums + 2 * c + 4);
    hn::StoreU(hn::Mul(factor, hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low))),
               d, row + c);
  }
}
#endif

// Vectors for the few features of one query or key: at most eight lanes.
using Few = hn::CappedTag<float, 8>;
constexpr int64_t kFewLanes = static_cast<int64_t>(hn::MaxLanes(Few()));

// Returns the sum of a[c] b[c].
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

// to = from. Most heads have 8 numbers, for which a call to memcpy costs more than the copy.
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
