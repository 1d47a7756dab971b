// What a GPU does row by row around a network's products, each in one pass over memory: residual
// and layer norm, bias and ReLU, soft-max cross-entropy. [P, rows, width] everywhere, contiguous
// and not empty; all memory is the device's. T is float or BFloat16; sums are float32.
//
// Sums down the columns are made in an order that is a function of the shape of one member alone,
// without atomic operations: the bits are the same from run to run, and those of a member alone are
// those that it gets in a pack.
//
// All put their kernels on `stream`, a cudaStream_t of the current device (null: the default one),
// and do not wait for them. They return null, or why a kernel could not be launched. A workspace
// may be used again for what follows on the stream. simt.h says how the kernels are tested without
// a GPU.
#ifndef LENGTHWISE_MODELS_KERNELS_ROWS_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_ROWS_CUDA_H_

#include <cstdint>

#include "models/kernels/add_layer_norm.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/cross_entropy.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// False where the program was built without nvcc; the functions below then only report that.
bool HasRowsCuda();

// The widest rows that the norm's kernels take; wider ones are for the caller to keep away.
constexpr int64_t kMaxCudaNormWidth = 1024;

// As AddLayerNorm. What is added, b, may be bfloat16: it comes from a product.
template <typename T>
const char* AddLayerNormCuda(const RowsShape& shape, float epsilon, const float* a, const T* b,
                             const float* scale, const float* offset,
                             const AddLayerNormResult& result, void* stream);

// As AddLayerNormBackward. The gradient of b is that of the sum, as T; null where it is not wanted.
// `workspace` has AddLayerNormWorkspaceCuda floats.
template <typename T>
const char* AddLayerNormBackwardCuda(const RowsShape& shape, const float* x, const float* r,
                                     const float* scale, const float* y_gradient,
                                     const AddLayerNormGradients& gradients, T* b_gradient,
                                     float* workspace, void* stream);
int64_t AddLayerNormWorkspaceCuda(const RowsShape& shape);

// Replaces `rows` by max(rows + bias, 0), with `bias` [P, width]. What is not a number stays so.
// Where the width is a multiple of 4, `rows`, and `gradient` below, begin at multiples of four
// numbers' size, as LibTorch's tensors do.
template <typename T>
const char* BiasReluCuda(const RowsShape& shape, const float* bias, T* rows, void* stream);

// Of the `rows` that BiasReluCuda left and the gradient of them: replaces `gradient` by 0 where a
// row's number is 0, which is the gradient before the bias was added, and sums it down the columns,
// `bias_gradient` [P, width]. `workspace` has BiasReluWorkspaceCuda floats.
template <typename T>
const char* BiasReluBackwardCuda(const RowsShape& shape, const T* rows, T* gradient,
                                 float* bias_gradient, float* workspace, void* stream);
int64_t BiasReluWorkspaceCuda(const RowsShape& shape);

// As CrossEntropy and CrossEntropyBackward. `workspace` has CrossEntropyWorkspaceCuda floats.
const char* CrossEntropyCuda(const RowsShape& shape, const CrossEntropyInputs& inputs,
                             const CrossEntropyResult& result, float* workspace, void* stream);
const char* CrossEntropyBackwardCuda(const RowsShape& shape, const CrossEntropyInputs& inputs,
                                     const float* log_sum_exp, const float* sum_gradients,
                                     float* logits_gradient, void* stream);
int64_t CrossEntropyWorkspaceCuda(const RowsShape& shape);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ROWS_CUDA_H_
