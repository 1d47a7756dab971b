#include "models/kernels/gated_gelu.h"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/gated_gelu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

// Computes Phi(g) and phi(g) of the normal distribution. With t = 1 / (1 + p |g| / sqrt(2)) the
// tail is t (a1 + t (a2 + ...)) e^(-g^2 / 2) / 2 (Abramowitz and Stegun 7.1.26), so that one
// exponential serves both.
HWY_INLINE void Normal(FloatVector g, FloatVector& distribution, FloatVector& density) {
  const Floats d;
  const auto one = hn::Set(d, 1.0F);
  const auto power = Exp(hn::Mul(hn::Mul(g, g), hn::Set(d, -0.5F)));
  const auto t = hn::Div(one, hn::MulAdd(hn::Abs(g), hn::Set(d, 0.3275911F * 0.707106781F), one));
  auto sum = hn::MulAdd(t, hn::Set(d, 1.061405429F), hn::Set(d, -1.453152027F));
  sum = hn::MulAdd(sum, t, hn::Set(d, 1.421413741F));
  sum = hn::MulAdd(sum, t, hn::Set(d, -0.284496736F));
  sum = hn::MulAdd(sum, t, hn::Set(d, 0.254829592F));
  const auto tail = hn::Mul(hn::Mul(hn::Mul(sum, t), power), hn::Set(d, 0.5F));
  distribution = hn::IfThenElse(hn::Lt(g, hn::Zero(d)), tail, hn::Sub(one, tail));
  density = hn::Mul(power, hn::Set(d, 0.398942280F));
}

// Loads and stores the row's last columns, fewer than a vector has lanes.
HWY_INLINE FloatVector LoadRest(const float* from, int64_t count) {
  HWY_ALIGN float lanes[kLanes] = {};
  std::copy_n(from, count, lanes);
  return hn::Load(Floats(), lanes);
}
HWY_INLINE void StoreRest(FloatVector values, int64_t count, float* to) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(values, Floats(), lanes);
  std::copy_n(lanes, count, to);
}

HWY_INLINE FloatVector Gated(FloatVector gate, FloatVector value) {
  FloatVector distribution, density;
  Normal(gate, distribution, density);
  return hn::Mul(hn::Mul(gate, distribution), value);
}

HWY_INLINE void Differentiate(FloatVector gate, FloatVector value, FloatVector dy,
                              FloatVector& dgate, FloatVector& dvalue) {
  FloatVector distribution, density;
  Normal(gate, distribution, density);
  dgate = hn::Mul(hn::Mul(dy, value), hn::MulAdd(gate, density, distribution));
  dvalue = hn::Mul(dy, hn::Mul(gate, distribution));
}

}  // namespace

void GateRows(const float* x, int64_t rows, int64_t width, float* y) {
  const Floats d;
  for (int64_t row = 0; row < rows; ++row, x += 2 * width, y += width) {
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      hn::StoreU(Gated(hn::LoadU(d, x + c), hn::LoadU(d, x + width + c)), d, y + c);
    }
    if (c == width) continue;
    StoreRest(Gated(LoadRest(x + c, width - c), LoadRest(x + width + c, width - c)), width - c,
              y + c);
  }
}

void DifferentiateRows(const float* x, const float* dy, int64_t rows, int64_t width, float* dx) {
  const Floats d;
  for (int64_t row = 0; row < rows; ++row, x += 2 * width, dy += width, dx += 2 * width) {
    FloatVector dgate, dvalue;
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      Differentiate(hn::LoadU(d, x + c), hn::LoadU(d, x + width + c), hn::LoadU(d, dy + c), dgate,
                    dvalue);
      hn::StoreU(dgate, d, dx + c);
      hn::StoreU(dvalue, d, dx + width + c);
    }
    if (c == width) continue;
    Differentiate(LoadRest(x + c, width - c), LoadRest(x + width + c, width - c),
                  LoadRest(dy + c, width - c), dgate, dvalue);
    StoreRest(dgate, width - c, dx + c);
    StoreRest(dvalue, width - c, dx + width + c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {
namespace {

// Rows per unit of work.
constexpr int64_t kRows = 16;

template <typename Body>
void ForChunks(int64_t rows, const ParallelFor& parallel_for, const Body& body) {
  parallel_for((rows + kRows - 1) / kRows, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kRows;
    body(first, std::min(end * kRows, rows) - first);
  });
}

}  // namespace

HWY_EXPORT(GateRows);
HWY_EXPORT(DifferentiateRows);

void GatedGelu(int64_t rows, int64_t width, const float* x, float* y,
               const ParallelFor& parallel_for) {
  ForChunks(rows, parallel_for, [&](int64_t first, int64_t count) {
    HWY_DYNAMIC_DISPATCH(GateRows)(x + 2 * first * width, count, width, y + first * width);
  });
}

void GatedGeluBackward(int64_t rows, int64_t width, const float* x, const float* y_gradient,
                       float* x_gradient, const ParallelFor& parallel_for) {
  ForChunks(rows, parallel_for, [&](int64_t first, int64_t count) {
    HWY_DYNAMIC_DISPATCH(DifferentiateRows)
    (x + 2 * first * width, y_gradient + first * width, count, width,
     x_gradient + 2 * first * width);
  });
}

}  // namespace lengthwise::kernels
#endif
