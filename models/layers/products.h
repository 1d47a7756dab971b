// Matrix products, forward and backward, on several threads of a CPU. Their shape alone determines
// how they are cut into pieces, and each piece is one product of LibTorch's on one thread, so
// results do not depend on the number of threads.
//
// Products of bfloat16 are those of the same numbers in float32, rounded once: LibTorch's own are
// slow on CPUs without instructions for them, and their bits depend on the CPU.
#ifndef LENGTHWISE_MODELS_LAYERS_PRODUCTS_H_
#define LENGTHWISE_MODELS_LAYERS_PRODUCTS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Returns at::matmul of two tensors [..., m, k] and [..., k, n] with the same number of dimensions.
at::Tensor MatrixProduct(const at::Tensor& a, const at::Tensor& b);

// Returns a b + bias with `bias` [n], `a` [m, k] and `b` [k, n], or with `bias` [P, n] and `a` and
// `b` as P such matrices.
at::Tensor MatrixProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_PRODUCTS_H_
