#include "models/kernels/linear.h"

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(Forward);
HWY_EXPORT(InputGradient);
HWY_EXPORT(WeightGradient);

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

}  // namespace lengthwise::kernels
#endif
