// CUDA kernels of rows_cuda.h for residual and layer norm. A warp processes one row and keeps it in
// registers, kOfLane numbers per thread, so that memory is read once. `Launcher`: see simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_ADD_LAYER_NORM_CUDA_INL_H_
#define LENGTHWISE_MODELS_KERNELS_ADD_LAYER_NORM_CUDA_INL_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "models/kernels/bfloat16.h"
#include "models/kernels/column_tiles-inl.h"
#include "models/kernels/norms.h"
#include "models/kernels/rows_cuda.h"
#include "models/kernels/simt.h"
#include "models/kernels/sum_parts-inl.h"

namespace lengthwise::kernels {

constexpr int kNormWarps = 8;
constexpr int kNormThreads = kNormWarps * simt::kWarp;

template <typename T, int kOfLane>
LENGTHWISE_KERNEL void AddLayerNormKernel(AddLayerNormCall<T> call) {
  const auto width = static_cast<int>(call.shape.width);
  const int lane = simt::Thread() % simt::kWarp;
  const int64_t row = simt::Block() * kNormWarps + simt::Thread() / simt::kWarp;
  // Uniform over the warp, as AddOverWarp requires.
  if (row >= call.shape.members * call.shape.rows) return;
  const int64_t parameters = ParametersOf(call.shape, row / call.shape.rows);
  const auto columns = static_cast<float>(width);

  float x[kOfLane];
  float total[1] = {0};
  LENGTHWISE_UNROLL
  for (int k = 0; k < kOfLane; ++k) {
    const int c = lane + k * simt::kWarp;
    x[k] = c < width ? call.a[row * width + c] + ToFloat(call.b[row * width + c]) : 0.0F;
    total[0] += x[k];
  }
  simt::AddOverWarp(total);
  const float mean = total[0] / columns;
  float squares[1] = {0};
  LENGTHWISE_UNROLL
  for (int k = 0; k < kOfLane; ++k) {
    x[k] -= mean;
    if (lane + k * simt::kWarp < width) squares[0] += x[k] * x[k];
  }
  simt::AddOverWarp(squares);
  const float r = 1 / sqrtf(squares[0] / columns + call.epsilon);
  if (lane == 0) call.result.r[row] = r;
  LENGTHWISE_UNROLL
  for (int k = 0; k < kOfLane; ++k) {
    const int c = lane + k * simt::kWarp;
    if (c >= width) continue;
    call.result.x[row * width + c] = x[k] * r;
    const float y = x[k] * r * call.scale[parameters + c] + call.offset[parameters + c];
    call.result.y[row * width + c] = y;
    if (call.operand != nullptr) call.operand[row * width + c] = FromFloat<BFloat16>(y);
  }
}

// Each block processes one chunk of one member's rows; its warps take every kNormWarps-th row.
// Parts are [chunks, width].
template <typename T, int kOfLane>
LENGTHWISE_KERNEL void AddLayerNormBackwardKernel(AddLayerNormBackwardCall<T> call,
                                                  float* scale_parts, float* offset_parts) {
  const auto width = static_cast<int>(call.shape.width);
  const int lane = simt::Thread() % simt::kWarp, warp = simt::Thread() / simt::kWarp;
  const int64_t chunk = simt::Block(), member = chunk / Chunks(call.shape);
  const int64_t first = member * call.shape.rows + chunk % Chunks(call.shape) * kChunkRows;
  const int64_t rest = (member + 1) * call.shape.rows - first;
  const int64_t parameters = ParametersOf(call.shape, member);
  const auto columns = static_cast<float>(width);
  simt::SharedArrays arrays;
  float* shared = arrays.Take(kNormWarps * width);

  float scales[kOfLane], scale_sums[kOfLane], offset_sums[kOfLane];
  LENGTHWISE_UNROLL
  for (int k = 0; k < kOfLane; ++k) {
    const int c = lane + k * simt::kWarp;
    scales[k] = c < width ? call.scale[parameters + c] : 0.0F;
    scale_sums[k] = offset_sums[k] = 0;
  }
  for (int64_t row = first + warp; row < first + (rest < kChunkRows ? rest : kChunkRows);
       row += kNormWarps) {
    float x[kOfLane], dx[kOfLane];
    float means[2] = {0, 0};  // of dx and of dx x
    LENGTHWISE_UNROLL
    for (int k = 0; k < kOfLane; ++k) {
      const int c = lane + k * simt::kWarp;
      const bool there = c < width;
      x[k] = there ? call.x[row * width + c] : 0.0F;
      float dy = 0;
      if (there && call.y_gradient != nullptr) dy = call.y_gradient[row * width + c];
      if (there && call.operand_gradient != nullptr) {
        dy += ToFloat(call.operand_gradient[row * width + c]);
      }
      scale_sums[k] += dy * x[k];
      offset_sums[k] += dy;
      dx[k] = dy * scales[k];
      means[0] += dx[k];
      means[1] += dx[k] * x[k];
    }
    simt::AddOverWarp(means);
    const float r = call.r[row], mean = means[0] / columns, along = means[1] / columns;
    LENGTHWISE_UNROLL
    for (int k = 0; k < kOfLane; ++k) {
      const int c = lane + k * simt::kWarp;
      if (c >= width) continue;
      const float gradient = (dx[k] - mean - x[k] * along) * r;
      call.gradients.sum[row * width + c] = gradient;
      if (call.b_gradient != nullptr) call.b_gradient[row * width + c] = FromFloat<T>(gradient);
    }
  }

  const auto write = [&](const float(&sums)[kOfLane], float* parts) {
    simt::Barrier();  // the previous sums in `shared` have been read
    LENGTHWISE_UNROLL
    for (int k = 0; k < kOfLane; ++k) {
      const int c = lane + k * simt::kWarp;
      if (c < width) shared[warp * width + c] = sums[k];
    }
    simt::Barrier();
    for (int c = simt::Thread(); c < width; c += kNormThreads) {
      float sum = 0;
      for (int w = 0; w < kNormWarps; ++w) sum += shared[w * width + c];
      parts[chunk * width + c] = sum;
    }
  };
  write(scale_sums, scale_parts);
  write(offset_sums, offset_parts);
}

// Calls body(std::integral_constant) with the smallest instantiated kOfLane that fits `width`.
template <typename Body>
void WithNumbersOfLane(int64_t width, const Body& body) {
  if (width <= 2 * simt::kWarp) return body(std::integral_constant<int, 2>());
  if (width <= 4 * simt::kWarp) return body(std::integral_constant<int, 4>());
  if (width <= 8 * simt::kWarp) return body(std::integral_constant<int, 8>());
  if (width <= 16 * simt::kWarp) return body(std::integral_constant<int, 16>());
  body(std::integral_constant<int, 32>());
}

template <typename T, typename Launcher>
void LaunchAddLayerNorm(Launcher& launcher, const AddLayerNormCall<T>& call) {
  const int64_t rows = call.shape.members * call.shape.rows;
  WithNumbersOfLane(call.shape.width, [&](auto of_lane) {
    launcher.Launch(&AddLayerNormKernel<T, decltype(of_lane)::value>,
                    (rows + kNormWarps - 1) / kNormWarps, kNormThreads, 0, call);
  });
}

template <typename T, typename Launcher>
void LaunchAddLayerNormBackward(Launcher& launcher, const AddLayerNormBackwardCall<T>& call,
                                float* workspace) {
  const RowsShape& shape = call.shape;
  const int64_t chunks = Chunks(shape);
  float* scale_parts = workspace;
  float* offset_parts = workspace + shape.members * chunks * shape.width;
  WithNumbersOfLane(shape.width, [&](auto of_lane) {
    launcher.Launch(&AddLayerNormBackwardKernel<T, decltype(of_lane)::value>,
                    shape.members * chunks, kNormThreads,
                    static_cast<int64_t>(sizeof(float)) * ((kNormWarps * shape.width + 3) / 4 * 4),
                    call, scale_parts, offset_parts);
  });
  LaunchSum(launcher, scale_parts, shape.members, chunks, shape.width, call.gradients.scale);
  LaunchSum(launcher, offset_parts, shape.members, chunks, shape.width, call.gradients.offset);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADD_LAYER_NORM_CUDA_INL_H_
