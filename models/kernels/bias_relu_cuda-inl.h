// CUDA kernels of rows_cuda.h for bias and ReLU. `Launcher`: see simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_BIAS_RELU_CUDA_INL_H_
#define LENGTHWISE_MODELS_KERNELS_BIAS_RELU_CUDA_INL_H_

#include <cstdint>
#include <type_traits>

#include "models/kernels/bfloat16.h"
#include "models/kernels/column_tiles-inl.h"
#include "models/kernels/simt.h"
#include "models/kernels/sum_parts-inl.h"

namespace lengthwise::kernels {

template <typename T, int kAtOnce>
LENGTHWISE_KERNEL void BiasReluKernel(RowsShape shape, const float* bias, T* rows) {
  const ColumnPlace<kAtOnce> place(shape);
  if (!place.there) return;
  float added[kAtOnce];
  LENGTHWISE_UNROLL
  for (int k = 0; k < kAtOnce; ++k) {
    added[k] = bias[ParametersOf(shape, place.member) + place.column + k];
  }
  for (int r = place.warp; r < place.count; r += kColumnWarps) {
    T* at = rows + (place.first + r) * shape.width + place.column;
    auto several = simt::Load<kAtOnce>(at);
    LENGTHWISE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const float x = ToFloat(several.x[k]) + added[k];
      several.x[k] = FromFloat<T>(x < 0 ? 0.0F : x);
    }
    simt::Store(several, at);
  }
}

template <typename T, int kAtOnce>
LENGTHWISE_KERNEL void BiasReluBackwardKernel(RowsShape shape, const T* rows, T* gradient,
                                              float* parts) {
  const ColumnPlace<kAtOnce> place(shape);
  simt::SharedArrays arrays;
  float* shared = arrays.Take(kColumnThreads * kAtOnce);
  float sums[kAtOnce] = {};
  if (place.there) {
    for (int r = place.warp; r < place.count; r += kColumnWarps) {
      const int64_t at = (place.first + r) * shape.width + place.column;
      const auto row = simt::Load<kAtOnce>(rows + at);
      auto several = simt::Load<kAtOnce>(gradient + at);
      LENGTHWISE_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        if (ToFloat(row.x[k]) == 0) several.x[k] = FromFloat<T>(0);
        sums[k] += ToFloat(several.x[k]);
      }
      simt::Store(several, gradient + at);
    }
  }
  WriteColumnSums(shape, place, sums, shared, parts);
}

// Calls body(std::integral_constant) with the numbers a thread reads at once: 4 if rows keep vector
// loads aligned, else 1.
template <typename Body>
void WithNumbersAtOnce(const RowsShape& shape, const Body& body) {
  if (shape.width % 4 == 0) return body(std::integral_constant<int, 4>());
  body(std::integral_constant<int, 1>());
}

template <typename T, typename Launcher>
void LaunchBiasRelu(Launcher& launcher, const RowsShape& shape, const float* bias, T* rows) {
  WithNumbersAtOnce(shape, [&](auto at_once) {
    constexpr int kAtOnce = decltype(at_once)::value;
    launcher.Launch(&BiasReluKernel<T, kAtOnce>, ColumnTiles<kAtOnce>::Blocks(shape),
                    kColumnThreads, 0, shape, bias, rows);
  });
}

template <typename T, typename Launcher>
void LaunchBiasReluBackward(Launcher& launcher, const RowsShape& shape, const T* rows, T* gradient,
                            float* bias_gradient, float* workspace) {
  WithNumbersAtOnce(shape, [&](auto at_once) {
    constexpr int kAtOnce = decltype(at_once)::value;
    constexpr int64_t kSharedBytes = sizeof(float) * kColumnThreads * kAtOnce;
    launcher.Launch(&BiasReluBackwardKernel<T, kAtOnce>, ColumnTiles<kAtOnce>::Blocks(shape),
                    kColumnThreads, kSharedBytes, shape, rows, gradient, workspace);
  });
  LaunchSum(launcher, workspace, shape.members, Chunks(shape), shape.width, bias_gradient);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_BIAS_RELU_CUDA_INL_H_
