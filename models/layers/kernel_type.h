// Tensors' types as our kernels name them.
#ifndef LENGTHWISE_MODELS_LAYERS_KERNEL_TYPE_H_
#define LENGTHWISE_MODELS_LAYERS_KERNEL_TYPE_H_

#include "ATen/core/Tensor.h"
#include "models/kernels/bfloat16.h"

namespace lengthwise::models {

// body(float()) or body(kernels::BFloat16()), as the type of `tensor` is; returns what it returns.
template <typename Body>
auto WithKernelType(const at::Tensor& tensor, const Body& body) {
  return tensor.scalar_type() == at::kBFloat16 ? body(kernels::BFloat16()) : body(float());
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_KERNEL_TYPE_H_
