// The attention of attention.h on a GPU: the same formula, terms and layouts, with queries, keys
// and values in float32 or bfloat16 and all sums in float32. Like there, no tensor of [n, n] for
// each sequence exists: the backward pass computes probabilities again from the rows'
// log-sum-exps.
//
// Gradients of what the sequences of a batch share are sums in an order that is a function of the
// shape of one member alone; there are no atomic operations. So the bits are the same from run to
// run, and those of a member alone are those that it gets in a pack.
//
// attention_tiles.h defines the tiling. simt.h explains testing the kernels without a GPU.
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_CUDA_H_

#include <cstdint>

#include "models/kernels/attention.h"
#include "models/kernels/bfloat16.h"

namespace lengthwise::kernels {

// Numbers of a head that the kernels take: 1 .. kMaxCudaHeadSize.
constexpr int64_t kMaxCudaHeadSize = 64;

// All memory is the device's. T is float or BFloat16.
//
// Both put their kernels on `stream`, a cudaStream_t of the current device (null: the default one),
// and do not wait for them. They return null, or why a kernel could not be launched.
//
// As AttentionForward. `log_sum_exp` may be null.
template <typename T>
const char* AttentionForwardCuda(const AttentionInputsOf<T>& inputs, const HeadVectors<T>& output,
                                 float* log_sum_exp, void* stream);

// As AttentionBackward. `workspace` has AttentionWorkspaceCuda floats; it may be used again for
// what follows on the stream.
template <typename T>
const char* AttentionBackwardCuda(const AttentionInputsOf<T>& inputs,
                                  const HeadVectors<const T>& output,
                                  const HeadVectors<const T>& output_gradient,
                                  const float* log_sum_exp,
                                  const AttentionGradientsOf<T>& gradients, float* workspace,
                                  void* stream);

// Floats of workspace that a backward pass needs: n for each sequence and head, and partial sums
// of the terms' gradients, of which there are several only where a member is small. Of `terms`
// it reads which are there.
int64_t AttentionWorkspaceCuda(const AttentionShape& shape, const AttentionTerms& terms);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_CUDA_H_
