#include "models/kernels/feed_forward.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/kernels/row_chunks.h"
#include "models/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/feed_forward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

void Forward(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
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

// Partial sums over the rows of one chunk.
struct Sums {
  float* up;
  float* up_bias;
  float* down;
  float* down_bias;
};

// Backward pass of one chunk, with its scratch memory.
class Backward {
 public:
  Backward(const FeedForwardShape& shape, const float* up, const float* down)
      : shape_(shape),
        up_(up),
        down_(down),
        between_(scratch_.Zeros(RowChunks::kFewRows * shape.hidden)),
        packed_(scratch_.Zeros(
            gemm::PackedSize(gemm::kSummedRows, std::max(shape.hidden, shape.features)))) {}

  // Up to kFewRows rows: writes `dx` and adds to `sums`.
  void Rows(int64_t member, int64_t rows, const float* x, const float* hidden, const float* dy,
            float* dx, const Sums& sums) {
    const int64_t features = shape_.features, width = shape_.hidden;
    gemm::Multiply</*kAdd=*/false>({dy, features, 1}, rows, features,
                                   down_ + member * gemm::PackedSize(features, width), width,
                                   gemm::WhereActive{hidden, width}, between_, width);
    gemm::Multiply</*kAdd=*/false>({between_, width, 1}, rows, width,
                                   up_ + member * gemm::PackedSize(width, features), features,
                                   gemm::AsItIs(), dx, features);
    gemm::AddTransposedProduct(hidden, width, dy, features, rows, packed_, sums.down);
    gemm::AddTransposedProduct(x, features, between_, width, rows, packed_, sums.up);
    gemm::AddRows(dy, rows, features, sums.down_bias);
    gemm::AddRows(between_, rows, width, sums.up_bias);
  }

 private:
  const FeedForwardShape& shape_;
  // Transposed and packed.
  const float* up_;
  const float* down_;
  Scratch scratch_;
  float* between_;  // gradient of the hidden activations
  float* packed_;
};

void RunBackward(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
                 const float* hidden, const float* dy, const FeedForwardGradients& gradients,
                 const ParallelFor& parallel_for) {
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
    Backward backward(shape, up, down);
    const Sums sums = {.up = up_sums.data() + rows.number * size,
                       .up_bias = up_bias_sums.data() + rows.number * width,
                       .down = down_sums.data() + rows.number * size,
                       .down_bias = down_bias_sums.data() + rows.number * features};
    for (int64_t r = 0; r < rows.count; r += RowChunks::kFewRows) {
      const int64_t first = rows.first + r;
      backward.Rows(rows.member, std::min(RowChunks::kFewRows, rows.count - r),
                    x + first * features, hidden + first * width, dy + first * features,
                    gradients.x + first * features, sums);
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
HWY_EXPORT(RunBackward);

void FeedForward(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
                 float* hidden, float* y, const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, weights, x, hidden, y, parallel_for);
}

void FeedForwardBackward(const FeedForwardShape& shape, const FeedForwardWeights& weights,
                         const float* x, const float* hidden, const float* dy,
                         const FeedForwardGradients& gradients, const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(RunBackward)(shape, weights, x, hidden, dy, gradients, parallel_for);
}

}  // namespace lengthwise::kernels
#endif
