// Matrix products and basic layers for a pack of P models, each with its own weights.
//
// Products are in the parameters' type or in bfloat16, which has eight significant bits. This is
// mixed precision as in Micikevicius et al. 2018, without loss scaling, because bfloat16 has
// float32's range. Parameters, norms, softmax, losses and the values of positional encodings stay
// float32.
#ifndef LENGTHWISE_MODELS_LAYERS_LAYERS_H_
#define LENGTHWISE_MODELS_LAYERS_LAYERS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// While an instance with `wanted` lives, the functions below use bfloat16 in place of float32, on
// its thread and on every device. Backward passes use the types of their forward pass, whenever and
// on whichever thread they run.
class Bfloat16Products {
 public:
  explicit Bfloat16Products(bool wanted = true);
  ~Bfloat16Products();
  Bfloat16Products(const Bfloat16Products&) = delete;
  Bfloat16Products& operator=(const Bfloat16Products&) = delete;

  // Returns true if such an instance lives on this thread.
  static bool Active();

 private:
  const bool before_;
};

// Returns a product's operand: converts float32 to bfloat16 if products use it; leaves other types
// unchanged.
at::Tensor Operand(const at::Tensor& tensor);

// Converts bfloat16 to float32; leaves other types unchanged.
at::Tensor Widened(const at::Tensor& tensor);

// Returns MatrixProduct of the operands, in the type of `a`. Accumulates in float32.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);

// Returns x W, [P, B, n, d_out] in the features' type: `features` [P, B, n, d_in], `weight` [P,
// d_in, d_out], product in bfloat16 while Bfloat16Products is active; x W + b with `bias` [P,
// d_out]. Many rows on the CPU with small weights use our own kernels. Everything else uses
// LibTorch's: one matrix product if P is 1, otherwise a batched one.
at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight,
                  const at::Tensor& bias = {});

// Returns `features` [P, B, n, H * size] as [P, B, H, n, size], a view.
at::Tensor SplitHeads(const at::Tensor& features, int64_t heads);

// Returns rows `tokens` (int64 [P, B, n]) of `table` [P, W, d], as [P, B, n, d].
at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_LAYERS_H_
