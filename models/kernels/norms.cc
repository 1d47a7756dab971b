#include "models/kernels/norms.h"

#include <cmath>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/norms.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

// Sums over the columns [0, width) of a row: `term(c)` returns the vector of columns from c on,
// `last(c)` one column of the scalar tail.
template <typename Term, typename Last>
HWY_INLINE float SumColumns(int64_t width, const Term& term, const Last& last) {
  const Floats d;
  auto sums = hn::Zero(d);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) sums = hn::Add(sums, term(c));
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; c < width; ++c) sum += last(c);
  return sum;
}

// Normalises one row in place: `x` holds a + b on entry. Returns r.
float NormaliseRow(int64_t width, float epsilon, const float* scale, const float* offset, float* x,
                   float* y) {
  const Floats d;
  const auto columns = static_cast<float>(width);
  const float mean =
      SumColumns(
          width, [&](int64_t c) { return hn::LoadU(d, x + c); }, [&](int64_t c) { return x[c]; }) /
      columns;
  const auto means = hn::Set(d, mean);
  const float variance = SumColumns(
                             width,
                             [&](int64_t c) {
                               const auto off = hn::Sub(hn::LoadU(d, x + c), means);
                               return hn::Mul(off, off);
                             },
                             [&](int64_t c) { return (x[c] - mean) * (x[c] - mean); }) /
                         columns;
  const float r = 1 / std::sqrt(variance + epsilon);
  const auto rs = hn::Set(d, r);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    const auto normalised = hn::Mul(hn::Sub(hn::LoadU(d, x + c), means), rs);
    hn::StoreU(normalised, d, x + c);
    hn::StoreU(hn::MulAdd(normalised, hn::LoadU(d, scale + c), hn::LoadU(d, offset + c)), d, y + c);
  }
  for (; c < width; ++c) {
    x[c] = (x[c] - mean) * r;
    y[c] = x[c] * scale[c] + offset[c];
  }
  return r;
}

void AddRow(int64_t width, const float* a, const float* b, float* sum) {
  const Floats d;
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + c), hn::LoadU(d, b + c)), d, sum + c);
  }
  for (; c < width; ++c) sum[c] = a[c] + b[c];
}

// Writes one row's gradient, and adds the row's contribution to the gradients of scale and offset.
void DifferentiateRow(int64_t width, const float* x, float r, const float* scale, const float* dy,
                      float* dsum, float* dscale, float* doffset) {
  const Floats d;
  const auto columns = static_cast<float>(width);
  const auto scaled = [&](int64_t c) {
    return hn::Mul(hn::LoadU(d, dy + c), hn::LoadU(d, scale + c));
  };
  const float mean =
      SumColumns(width, scaled, [&](int64_t c) { return dy[c] * scale[c]; }) / columns;
  const float along = SumColumns(
                          width, [&](int64_t c) { return hn::Mul(scaled(c), hn::LoadU(d, x + c)); },
                          [&](int64_t c) { return dy[c] * scale[c] * x[c]; }) /
                      columns;
  const auto means = hn::Set(d, mean), alongs = hn::Set(d, along), rs = hn::Set(d, r);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    const auto vx = hn::LoadU(d, x + c), vdy = hn::LoadU(d, dy + c);
    const auto rest = hn::NegMulAdd(vx, alongs, hn::Sub(scaled(c), means));
    hn::StoreU(hn::Mul(rest, rs), d, dsum + c);
    hn::StoreU(hn::MulAdd(vdy, vx, hn::LoadU(d, dscale + c)), d, dscale + c);
    hn::StoreU(hn::Add(vdy, hn::LoadU(d, doffset + c)), d, doffset + c);
  }
  for (; c < width; ++c) {
    dsum[c] = (dy[c] * scale[c] - mean - x[c] * along) * r;
    dscale[c] += dy[c] * x[c];
    doffset[c] += dy[c];
  }
}

// Normalises one row. Returns r.
float RmsNormaliseRow(int64_t width, float epsilon, const float* x, const float* scale, float* y) {
  const Floats d;
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
  for (; c + kLanes <= width; c += kLanes) {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + c), rs), hn::LoadU(d, scale + c)), d, y + c);
  }
  for (; c < width; ++c) y[c] = x[c] * r * scale[c];
  return r;
}

// Writes one row's gradient, and adds the row's contribution to the gradient of scale.
void RmsDifferentiateRow(int64_t width, const float* x, float r, const float* scale,
                         const float* dy, float* dx, float* dscale) {
  const Floats d;
  const auto scaled = [&](int64_t c) {
    return hn::Mul(hn::LoadU(d, dy + c), hn::LoadU(d, scale + c));
  };
  const float along = SumColumns(
                          width, [&](int64_t c) { return hn::Mul(scaled(c), hn::LoadU(d, x + c)); },
                          [&](int64_t c) { return dy[c] * scale[c] * x[c]; }) *
                      r * r / static_cast<float>(width);
  const auto alongs = hn::Set(d, along), rs = hn::Set(d, r);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
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

void AddAndNormalise(const float* a, const float* b, const float* scale, const float* offset,
                     int64_t rows, int64_t width, float epsilon, float* x, float* y, float* r) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row * width;
    AddRow(width, a + place, b + place, x + place);
    r[row] = NormaliseRow(width, epsilon, scale, offset, x + place, y + place);
  }
}

void DifferentiateRows(const float* x, const float* r, const float* scale, const float* dy,
                       int64_t rows, int64_t width, float* dsum, float* dscale, float* doffset) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row * width;
    DifferentiateRow(width, x + place, r[row], scale, dy + place, dsum + place, dscale, doffset);
  }
}

void RmsNormaliseRows(const float* x, const float* scale, int64_t rows, int64_t width,
                      float epsilon, float* y, float* r) {
  for (int64_t row = 0; row < rows; ++row) {
    r[row] = RmsNormaliseRow(width, epsilon, x + row * width, scale, y + row * width);
  }
}

void RmsDifferentiateRows(const float* x, const float* r, const float* scale, const float* dy,
                          int64_t rows, int64_t width, float* dx, float* dscale) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row * width;
    RmsDifferentiateRow(width, x + place, r[row], scale, dy + place, dx + place, dscale);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(AddAndNormalise);
HWY_EXPORT(DifferentiateRows);
HWY_EXPORT(RmsNormaliseRows);
HWY_EXPORT(RmsDifferentiateRows);

void AddLayerNorm(const RowsShape& shape, float epsilon, const float* a, const float* b,
                  const float* scale, const float* offset, const AddLayerNormResult& result,
                  const ParallelFor& parallel_for) {
  RowChunks(shape).ForEach(parallel_for, [&](const RowChunk& rows) {
    const int64_t place = rows.first * shape.width, parameters = ParametersOf(shape, rows.member);
    HWY_DYNAMIC_DISPATCH(AddAndNormalise)
    (a + place, b + place, scale + parameters, offset + parameters, rows.count, shape.width,
     epsilon, result.x + place, result.y + place, result.r + rows.first);
  });
}

void AddLayerNormBackward(const RowsShape& shape, const float* x, const float* r,
                          const float* scale, const float* y_gradient,
                          const AddLayerNormGradients& gradients, const ParallelFor& parallel_for) {
  const RowChunks chunks(shape);
  const auto size = static_cast<size_t>(chunks.count() * shape.width);
  std::vector<float> scales(size), offsets(size);
  chunks.ForEach(parallel_for, [&](const RowChunk& rows) {
    const int64_t place = rows.first * shape.width;
    HWY_DYNAMIC_DISPATCH(DifferentiateRows)
    (x + place, r + rows.first, scale + ParametersOf(shape, rows.member), y_gradient + place,
     rows.count, shape.width, gradients.sum + place, scales.data() + rows.number * shape.width,
     offsets.data() + rows.number * shape.width);
  });
  chunks.Sum(scales, shape.width, gradients.scale);
  chunks.Sum(offsets, shape.width, gradients.offset);
}

void RmsNorm(const RowsShape& shape, float epsilon, const float* x, const float* scale, float* y,
             float* r, const ParallelFor& parallel_for) {
  RowChunks(shape).ForEach(parallel_for, [&](const RowChunk& rows) {
    const int64_t place = rows.first * shape.width;
    HWY_DYNAMIC_DISPATCH(RmsNormaliseRows)
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
    HWY_DYNAMIC_DISPATCH(RmsDifferentiateRows)
    (x + place, r + rows.first, scale + rows.member * shape.width, y_gradient + place, rows.count,
     shape.width, x_gradient + place, scales.data() + rows.number * shape.width);
  });
  chunks.Sum(scales, shape.width, scale_gradient);
}

}  // namespace lengthwise::kernels
#endif
