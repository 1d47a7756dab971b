// Row operations around a network's matrix products on a GPU, each fused into one pass over memory:
// residual and layer norm, bias and ReLU, soft-max cross-entropy. Arrays are [P, rows, width],
// contiguous, not empty, and in device memory. T is float or BFloat16; sums are float32.
//
// Results are reproducible: sums down the columns use no atomic operations, and their order depends
// on one member's shape alone. A member gets the same bits alone and in a pack.
//
// Each function enqueues its kernels on `stream`, a cudaStream_t of the current device (null: the
// default stream), and returns without waiting. It returns null, or CUDA's error message if a
// launch failed. Later work on the same stream may reuse the workspace. simt.h explains how kernels
// are tested without a GPU.
#ifndef LENGTHWISE_MODELS_KERNELS_ROWS_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_ROWS_CUDA_H_

#include <algorithm>
#include <cstdint>

#include "models/kernels/bfloat16.h"
#include "models/kernels/cross_entropy.h"
#include "models/kernels/norms.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// Widest row that the norm's kernels support. The caller must check it.
constexpr int64_t kMaxCudaNormWidth = 1024;

// Rows per chunk, whose sums are added up behind. Small enough that one member fills a GPU, large
// enough that few partial sums remain to be added.
constexpr int64_t kChunkRows = 64;

// Enough floats for each `workspace` below: two sums of each column and chunk, or three of a chunk.
inline int64_t RowsWorkspaceCuda(const RowsShape& shape) {
  return shape.members * ((shape.rows + kChunkRows - 1) / kChunkRows) *
         std::max<int64_t>(2 * shape.width, 3);
}

// AddLayerNorm on a GPU. b may be bfloat16, because it is the output of a product.
template <typename T>
struct AddLayerNormCall {
  RowsShape shape;
  float epsilon = 0;
  const float* a = nullptr;
  const T* b = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;
  AddLayerNormResult result;
  BFloat16* operand = nullptr;  // y rounded, for the next product; null if not wanted
};
template <typename T>
const char* AddLayerNormCuda(const AddLayerNormCall<T>& call, void* stream);

// AddLayerNormBackward on a GPU.
template <typename T>
struct AddLayerNormBackwardCall {
  RowsShape shape;
  const float* x = nullptr;
  const float* r = nullptr;
  const float* scale = nullptr;
  // Gradients of y and of its rounded copy, which are added. One may be null.
  const float* y_gradient = nullptr;
  const BFloat16* operand_gradient = nullptr;
  AddLayerNormGradients gradients;
  T* b_gradient = nullptr;  // the gradient of the sum as T; null if not wanted
};
template <typename T>
const char* AddLayerNormBackwardCuda(const AddLayerNormBackwardCall<T>& call, float* workspace,
                                     void* stream);

// Replaces `rows` by max(rows + bias, 0), with `bias` [P, width]. NaN propagates. If the width is a
// multiple of 4, `rows`, and `gradient` below, must be aligned to four elements, as LibTorch's
// tensors are.
template <typename T>
const char* BiasReluCuda(const RowsShape& shape, const float* bias, T* rows, void* stream);

// Backward pass of BiasReluCuda. `rows` is its result; `gradient`, the gradient of `rows`, is set
// to 0 where `rows` is 0. Writes the column sums of that to `bias_gradient` [P, width].
template <typename T>
const char* BiasReluBackwardCuda(const RowsShape& shape, const T* rows, T* gradient,
                                 float* bias_gradient, float* workspace, void* stream);

// CrossEntropy and CrossEntropyBackward on a GPU.
const char* CrossEntropyCuda(const RowsShape& shape, const CrossEntropyInputs& inputs,
                             const CrossEntropyResult& result, float* workspace, void* stream);
const char* CrossEntropyBackwardCuda(const RowsShape& shape, const CrossEntropyInputs& inputs,
                                     const float* log_sum_exp, const float* sum_gradients,
                                     float* logits_gradient, void* stream);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ROWS_CUDA_H_
