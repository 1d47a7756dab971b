// The matrix products of networks, in the parameters' type or in bfloat16, which has eight
// significant bits. Mixed precision as in Micikevicius et al. 2018, with bfloat16's range in place
// of a scaled loss: parameters, norms, softmax, losses and what encodings make of positions stay
// float32.
#ifndef LENGTHWISE_MODELS_LAYERS_PRODUCTS_H_
#define LENGTHWISE_MODELS_LAYERS_PRODUCTS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// While one that is `wanted` lives, the functions below use bfloat16 for float32, on its thread and
// on every device. What is computed backward of them is in the types that they had, wherever and
// whenever that is.
class Bfloat16Products {
 public:
  explicit Bfloat16Products(bool wanted = true);
  ~Bfloat16Products();
  Bfloat16Products(const Bfloat16Products&) = delete;
  Bfloat16Products& operator=(const Bfloat16Products&) = delete;

  // Whether one lives on this thread.
  static bool Active();

 private:
  const bool before_;
};

// A product's operand: float32 as bfloat16 where products are in it, all else as it is.
at::Tensor Operand(const at::Tensor& tensor);

// For what is no product: bfloat16 as float32, all else as it is.
at::Tensor Widened(const at::Tensor& tensor);

// at::matmul of the operands, in the type of `a`. Sums are float32.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_PRODUCTS_H_
