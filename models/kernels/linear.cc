#include "models/kernels/linear.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/kernels/row_chunks.h"
#include "models/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/linear.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

void Forward(const LinearShape& shape, const float* x, const float* weight, const float* bias,
             float* y, const ParallelFor& parallel_for) {
  const int64_t inputs = shape.inputs, outputs = shape.outputs;
  Scratch scratch;
  const float* packed =
      gemm::PackMembers(weight, inputs, outputs, shape.members, /*transposed=*/false, scratch);
  RowChunks({.members = shape.members, .rows = shape.rows})
      .ForEach(parallel_for, [&](const RowChunk& rows) {
        const gemm::Matrix from = {x + rows.first * inputs, inputs, 1};
        const float* matrix = packed + rows.member * gemm::PackedSize(inputs, outputs);
        float* to = y + rows.first * outputs;
        if (bias == nullptr) {
          gemm::Multiply</*kAdd=*/false>(from, rows.count, inputs, matrix, outputs, gemm::AsItIs(),
                                         to, outputs);
        } else {
          gemm::Multiply</*kAdd=*/false>(from, rows.count, inputs, matrix, outputs,
                                         gemm::PlusBias{bias + rows.member * outputs}, to, outputs);
        }
      });
}

void InputGradient(const LinearShape& shape, const float* dy, const float* weight, float* dx,
                   const ParallelFor& parallel_for) {
  const int64_t inputs = shape.inputs, outputs = shape.outputs;
  Scratch scratch;
  const float* packed =
      gemm::PackMembers(weight, outputs, inputs, shape.members, /*transposed=*/true, scratch);
  RowChunks({.members = shape.members, .rows = shape.rows})
      .ForEach(parallel_for, [&](const RowChunk& rows) {
        gemm::Multiply</*kAdd=*/false>({dy + rows.first * outputs, outputs, 1}, rows.count, outputs,
                                       packed + rows.member * gemm::PackedSize(outputs, inputs),
                                       inputs, gemm::AsItIs(), dx + rows.first * inputs, inputs);
      });
}

void WeightGradient(const LinearShape& shape, const float* x, const float* dy,
                    float* weight_gradient, float* bias_gradient, const ParallelFor& parallel_for) {
  const int64_t inputs = shape.inputs, outputs = shape.outputs, size = inputs * outputs;
  const RowChunks chunks({.members = shape.members, .rows = shape.rows}, RowChunks::kManyRows);
  std::vector<float> sums(static_cast<size_t>(chunks.count() * size));
  std::vector<float> bias_sums(
      static_cast<size_t>(bias_gradient == nullptr ? 0 : chunks.count() * outputs));
  chunks.ForEach(parallel_for, [&](const RowChunk& rows) {
    Scratch scratch;
    const float* from = dy + rows.first * outputs;
    gemm::AddTransposedProduct(x + rows.first * inputs, inputs, from, outputs, rows.count,
                               scratch.Zeros(gemm::PackedSize(gemm::kSummedRows, outputs)),
                               sums.data() + rows.number * size);
    if (bias_gradient == nullptr) return;
    gemm::AddRows(from, rows.count, outputs, bias_sums.data() + rows.number * outputs);
  });
  chunks.Sum(sums, size, weight_gradient);
  if (bias_gradient != nullptr) chunks.Sum(bias_sums, outputs, bias_gradient);
}

void BothLayers(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
                float* hidden, float* y, const ParallelFor& parallel_for) {
  const int64_t features = shape.features, width = shape.hidden;
  Scratch scratch;
  const auto pack = [&](const float* matrices, int64_t rows, int64_t columns) {
    return gemm::PackMembers(matrices, rows, columns, shape.members, /*transposed=*/false, scratch);
  };
  const float *up = pack(weights.up, features, width), *down = pack(weights.down, width, features);
  RowChunks({.members = shape.members, .rows = shape.rows})
      .ForEach(parallel_for, [&](const RowChunk& rows) {
        const int64_t p = rows.member;
        float* between = hidden + rows.first * width;
        gemm::Multiply</*kAdd=*/false>({x + rows.first * features, features, 1}, rows.count,
                                       features, up + p * gemm::PackedSize(features, width), width,
                                       gemm::PlusBiasRelu{weights.up_bias + p * width}, between,
                                       width);
        gemm::Multiply</*kAdd=*/false>({between, width, 1}, rows.count, width,
                                       down + p * gemm::PackedSize(width, features), features,
                                       gemm::PlusBias{weights.down_bias + p * features},
                                       y + rows.first * features, features);
      });
}

void BothLayersBackward(const FeedForwardShape& shape, const FeedForwardWeights& weights,
                        const float* x, const float* hidden, const float* dy,
                        const FeedForwardGradients& gradients, const ParallelFor& parallel_for) {
  const int64_t features = shape.features, width = shape.hidden, size = features * width;
  Scratch scratch;
  const auto pack = [&](const float* matrices, int64_t rows, int64_t columns) {
    return gemm::PackMembers(matrices, rows, columns, shape.members, /*transposed=*/true, scratch);
  };
  const float *up = pack(weights.up, width, features), *down = pack(weights.down, features, width);
  const RowChunks chunks({.members = shape.members, .rows = shape.rows}, RowChunks::kManyRows);
  const auto zeros = [&](int64_t count) {
    return std::vector<float>(static_cast<size_t>(chunks.count() * count));
  };
  std::vector<float> up_sums = zeros(size), down_sums = zeros(size), up_bias_sums = zeros(width),
                     down_bias_sums = zeros(features);
  chunks.ForEach(parallel_for, [&](const RowChunk& rows) {
    Scratch own;
    float* between = own.Zeros(RowChunks::kFewRows * width);  // gradient of the hidden activations
    float* packed = own.Zeros(gemm::PackedSize(gemm::kSummedRows, std::max(width, features)));
    for (int64_t r = 0; r < rows.count; r += RowChunks::kFewRows) {
      const int64_t first = rows.first + r, count = std::min(RowChunks::kFewRows, rows.count - r);
      const float *from = dy + first * features, *active = hidden + first * width;
      gemm::Multiply</*kAdd=*/false>({from, features, 1}, count, features,
                                     down + rows.member * gemm::PackedSize(features, width), width,
                                     gemm::WhereActive{active, width}, between, width);
      gemm::Multiply</*kAdd=*/false>({between, width, 1}, count, width,
                                     up + rows.member * gemm::PackedSize(width, features), features,
                                     gemm::AsItIs(), gradients.x + first * features, features);
      gemm::AddTransposedProduct(active, width, from, features, count, packed,
                                 down_sums.data() + rows.number * size);
      gemm::AddTransposedProduct(x + first * features, features, between, width, count, packed,
                                 up_sums.data() + rows.number * size);
      gemm::AddRows(from, count, features, down_bias_sums.data() + rows.number * features);
      gemm::AddRows(between, count, width, up_bias_sums.data() + rows.number * width);
    }
  });
  chunks.Sum(up_sums, size, gradients.up);
  chunks.Sum(up_bias_sums, width, gradients.up_bias);
  chunks.Sum(down_sums, size, gradients.down);
  chunks.Sum(down_bias_sums, features, gradients.down_bias);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(Forward);
HWY_EXPORT(InputGradient);
HWY_EXPORT(WeightGradient);
HWY_EXPORT(BothLayers);
HWY_EXPORT(BothLayersBackward);

void Linear(const LinearShape& shape, const float* x, const float* weight, const float* bias,
            float* y, const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, x, weight, bias, y, parallel_for);
}

void LinearInputGradient(const LinearShape& shape, const float* dy, const float* weight, float* dx,
                         const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(InputGradient)(shape, dy, weight, dx, parallel_for);
}

void LinearWeightGradient(const LinearShape& shape, const float* x, const float* dy,
                          float* weight_gradient, float* bias_gradient,
                          const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(WeightGradient)
  (shape, x, dy, weight_gradient, bias_gradient, parallel_for);
}

void FeedForward(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
                 float* hidden, float* y, const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(BothLayers)(shape, weights, x, hidden, y, parallel_for);
}

void FeedForwardBackward(const FeedForwardShape& shape, const FeedForwardWeights& weights,
                         const float* x, const float* hidden, const float* dy,
                         const FeedForwardGradients& gradients, const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(BothLayersBackward)(shape, weights, x, hidden, dy, gradients, parallel_for);
}

}  // namespace lengthwise::kernels
#endif
