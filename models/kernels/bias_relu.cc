#include "models/kernels/bias_relu.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/bias_relu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

void AddAndClampRow(const float* bias, int64_t width, float* x) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, bias + c));
    hn::StoreU(hn::Max(sum, hn::Zero(d)), d, x + c);
  }
  for (; c < width; ++c) x[c] = std::max(x[c] + bias[c], 0.0F);
}

void MaskAndSumRow(const float* result, const float* gradient, int64_t width, float* dx,
                   float* sums) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    const auto kept = hn::IfThenElseZero(hn::Gt(hn::LoadU(d, result + c), hn::Zero(d)),
                                         hn::LoadU(d, gradient + c));
    hn::StoreU(kept, d, dx + c);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c), kept), d, sums + c);
  }
  for (; c < width; ++c) {
    dx[c] = result[c] > 0 ? gradient[c] : 0;
    sums[c] += dx[c];
  }
}

}  // namespace

void AddAndClamp(const float* bias, int64_t rows, int64_t width, float* x) {
  for (int64_t r = 0; r < rows; ++r) AddAndClampRow(bias, width, x + r * width);
}

void MaskAndSum(const float* result, const float* gradient, int64_t rows, int64_t width, float* dx,
                float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    MaskAndSumRow(result + r * width, gradient + r * width, width, dx + r * width, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(AddAndClamp);
HWY_EXPORT(MaskAndSum);

void BiasRelu(const RowsShape& shape, const float* bias, float* x,
              const ParallelFor& parallel_for) {
  RowChunks(shape).ForEach(parallel_for, [&](const RowChunk& rows) {
    HWY_DYNAMIC_DISPATCH(AddAndClamp)
    (bias + rows.member * shape.width, rows.count, shape.width, x + rows.first * shape.width);
  });
}

void BiasReluBackward(const RowsShape& shape, const float* result, const float* gradient, float* dx,
                      float* bias_gradient, const ParallelFor& parallel_for) {
  const RowChunks chunks(shape);
  std::vector<float> sums(static_cast<size_t>(chunks.count() * shape.width));
  chunks.ForEach(parallel_for, [&](const RowChunk& rows) {
    const int64_t place = rows.first * shape.width;
    HWY_DYNAMIC_DISPATCH(MaskAndSum)
    (result + place, gradient + place, rows.count, shape.width, dx + place,
     sums.data() + rows.number * shape.width);
  });
  chunks.Sum(sums, bias_gradient);
}

}  // namespace lengthwise::kernels
#endif
