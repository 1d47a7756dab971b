// The variants of the kernels on tensor cores (tensor_attention_cuda.h, tensor_feed_forward_cuda.h)
// among which a device chooses by measurement. Without CUDA and LibTorch.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_VARIANTS_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_VARIANTS_H_

#include <array>

namespace lengthwise::kernels {

struct TensorVariant {
  // Blocks of the backward pass that a multiprocessor holds at once: 2, 3 or 4, which leave a
  // thread 255, 168 or 128 registers.
  int blocks = 3;
  // Sequences that a block takes one after another: fewer partial sums and less staging of what
  // they share, but fewer blocks.
  int sequences = 2;
  // True: sums of the keys' and values' gradients stay in registers, where such a kernel was
  // compiled (relative positions at 33 to 48 and at 65 to 80 tokens, 2 or 3 blocks). Elsewhere and
  // if false: in shared memory.
  bool in_registers = false;
};

// The first one is what is predicted to be the fastest.
inline constexpr std::array<TensorVariant, 15> kTensorVariants = {{
    {3, 2, false},
    {3, 1, false},
    {3, 4, false},
    {2, 1, false},
    {2, 2, false},
    {2, 4, false},
    {4, 1, false},
    {4, 2, false},
    {4, 4, false},
    {2, 1, true},
    {2, 2, true},
    {2, 4, true},
    {3, 1, true},
    {3, 2, true},
    {3, 4, true},
}};

// Rows that a block of the feed-forward layer takes: fewer partial sums and less staging of
// weights, but fewer blocks. A multiprocessor holds one block of the backward pass.
inline constexpr std::array<int, 4> kTensorFeedForwardRows = {1280, 2560, 512, 128};

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_VARIANTS_H_
