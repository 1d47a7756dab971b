#include "models/kernels/rms_norm.h"

#include <cmath>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/rms_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

// Normalises one row. Returns r.
float NormaliseRow(int64_t width, float epsilon, const float* x, const float* scale, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float squares = SumColumns(
      width,
      [&](int64_t c) {
        const auto v = hn::LoadU(d, x + c);
        return hn::Mul(v, v);
      },
      [&](int64_t c) { return x[c] * x[c]; });
  const float r = 1 / std::sqrt(squares / static_cast<float>(width) + epsilon);
  const auto rs = hn::Set(d, r);
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + c), rs), hn::LoadU(d, scale + c)), d, y + c);
  }
  for (; c < width; ++c) y[c] = x[c] * r * scale[c];
  return r;
}

// Writes one row's gradient, and adds the row's contribution to the gradient of scale.
void DifferentiateRow(int64_t width, const float* x, float r, const float* scale, const float* dy,
                      float* dx, float* dscale) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scaled = [&](int64_t c) {
    return hn::Mul(hn::LoadU(d, dy + c), hn::LoadU(d, scale + c));
  };
  const float along = SumColumns(
                          width, [&](int64_t c) { return hn::Mul(scaled(c), hn::LoadU(d, x + c)); },
                          [&](int64_t c) { return dy[c] * scale[c] * x[c]; }) *
                      r * r / static_cast<float>(width);
  const auto alongs = hn::Set(d, along), rs = hn::Set(d, r);
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    const auto vx = hn::LoadU(d, x + c), vdy = hn::LoadU(d, dy + c);
    hn::StoreU(hn::Mul(hn::NegMulAdd(vx, alongs, scaled(c)), rs), d, dx + c);
    hn::StoreU(hn::MulAdd(hn::Mul(vdy, vx), rs, hn::LoadU(d, dscale + c)), d, dscale + c);
  }
  for (; c < width; ++c) {
    dx[c] = (dy[c] * scale[c] - x[c] * along) * r;
    dscale[c] += dy[c] * x[c] * r;
  }
}

}  // namespace

void NormaliseRows(const float* x, const float* scale, int64_t rows, int64_t width, float epsilon,
                   float* y, float* r) {
  for (int64_t row = 0; row < rows; ++row) {
    r[row] = NormaliseRow(width, epsilon, x + row * width, scale, y + row * width);
  }
}

void DifferentiateRows(const float* x, const float* r, const float* scale, const float* dy,
                       int64_t rows, int64_t width, float* dx, float* dscale) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row * width;
    DifferentiateRow(width, x + place, r[row], scale, dy + place, dx + place, dscale);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(NormaliseRows);
HWY_EXPORT(DifferentiateRows);

void RmsNorm(const RowsShape& shape, float epsilon, const float* x, const float* scale, float* y,
             float* r, const ParallelFor& parallel_for) {
  RowChunks(shape).ForEach(parallel_for, [&](const RowChunk& rows) {
    const int64_t place = rows.first * shape.width;
    HWY_DYNAMIC_DISPATCH(NormaliseRows)
    (x + place, scale + rows.member * shape.width, rows.count, shape.width, epsilon, y + place,
     r + rows.first);
  });
}

void RmsNormBackward(const RowsShape& shape, const float* x, const float* r, const float* scale,
                     const float* y_gradient, float* x_gradient, float* scale_gradient,
                     const ParallelFor& parallel_for) {
  const RowChunks chunks(shape);
  std::vector<float> scales(static_cast<size_t>(chunks.count() * shape.width));
  chunks.ForEach(parallel_for, [&](const RowChunk& rows) {
    const int64_t place = rows.first * shape.width;
    HWY_DYNAMIC_DISPATCH(DifferentiateRows)
    (x + place, r + rows.first, scale + rows.member * shape.width, y_gradient + place, rows.count,
     shape.width, x_gradient + place, scales.data() + rows.number * shape.width);
  });
  chunks.Sum(scales, shape.width, scale_gradient);
}

}  // namespace lengthwise::kernels
#endif
