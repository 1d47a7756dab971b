// The feed-forward layer of feed_forward.h on a GPU's tensor cores, for 64 features and 256 hidden
// ones: products of bfloat16 with sums in float32. Everything else uses LibTorch's products and
// rows_cuda.h.
//
// The hidden layer, four times as large as the features, stays on the chip: the backward pass
// computes it again. So a pass reads and writes features alone. From the formula in double
// precision, outputs and gradients differ by up to 1e-2 (root mean square;
// tensor_feed_forward_simt_test.cc).
//
// There are no atomic operations; sums have an order that depends on the rows of one member. So the
// bits are the same from run to run, alone and in a pack.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_FEED_FORWARD_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_FEED_FORWARD_CUDA_H_

#include <cstdint>

#include "models/kernels/bfloat16.h"

namespace lengthwise::kernels {

constexpr int kTensorFeatures = 64, kTensorHidden = 256;
// Rows of a member that a block takes. More need fewer partial sums and less staging of weights,
// but leave fewer blocks: of 128, 512, 1280 and 2560 this was fastest for large packs on an H200.
constexpr int64_t kTensorBlockRows = 1280;
// Numbers of a member's gradient: up [64, 256], down [256, 64] and their biases, one after another.
constexpr int64_t kTensorFeedForwardNumbers =
    2 * kTensorFeatures * kTensorHidden + kTensorHidden + kTensorFeatures;

// Device memory; arrays of bfloat16 begin at multiples of 16 bytes.
struct TensorFeedForwardInputs {
  int64_t members = 1;
  int64_t rows = 1;                  // of a member
  const BFloat16* x = nullptr;       // [P, rows, 64]
  const BFloat16* up = nullptr;      // [P, 64, 256]
  const BFloat16* down = nullptr;    // [P, 256, 64]
  const float* up_bias = nullptr;    // [P, 256], members `up_stride` apart
  const float* down_bias = nullptr;  // [P, 64]; not read by the backward pass
  int64_t up_stride = kTensorHidden;
  int64_t down_stride = kTensorFeatures;
};

// Both put their kernels on `stream`, a cudaStream_t of the current device (null: the default one),
// and do not wait for them. They return null, or why a kernel could not be launched.
//
// `y` is [P, rows, 64].
const char* TensorFeedForwardCuda(const TensorFeedForwardInputs& inputs, BFloat16* y, void* stream);

// Overwrites `x_gradient` [P, rows, 64] and `gradients` [P, kTensorFeedForwardNumbers]. `workspace`
// has TensorFeedForwardWorkspace floats; it may be used again for what follows on the stream.
const char* TensorFeedForwardBackwardCuda(const TensorFeedForwardInputs& inputs,
                                          const BFloat16* y_gradient, BFloat16* x_gradient,
                                          float* gradients, float* workspace, void* stream);

// For the partial sums of the blocks that share a member's rows.
int64_t TensorFeedForwardWorkspace(const TensorFeedForwardInputs& inputs);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_FEED_FORWARD_CUDA_H_
