// Tensors as our kernels see them.
#ifndef LENGTHWISE_MODELS_LAYERS_KERNEL_TYPE_H_
#define LENGTHWISE_MODELS_LAYERS_KERNEL_TYPE_H_

#include "ATen/core/Tensor.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::models {

// Returns `parameter` [P, ...] itself if each member's numbers are contiguous, as in views of an
// arena; else a contiguous copy.
inline at::Tensor ByMember(const at::Tensor& parameter) {
  return parameter.select(0, 0).is_contiguous() ? parameter : parameter.contiguous();
}

// [P, B, n, d] as P times B n rows.
inline kernels::RowsShape RowsOf(const at::Tensor& features) {
  return {.members = features.size(0),
          .rows = features.size(1) * features.size(2),
          .width = features.size(3)};
}

inline bool HasKernelType(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16;
}

// body(float()) or body(kernels::BFloat16()), as `type` is, one of those; returns what it returns.
template <typename Body>
auto WithKernelType(at::ScalarType type, const Body& body) {
  return type == at::kBFloat16 ? body(kernels::BFloat16()) : body(float());
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_KERNEL_TYPE_H_
