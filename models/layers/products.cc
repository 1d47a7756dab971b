#include "models/layers/products.h"

#include "ATen/ops/matmul.h"

namespace lengthwise::models {
namespace {

thread_local bool in_bfloat16 = false;

}  // namespace

Bfloat16Products::Bfloat16Products(bool wanted) : before_(in_bfloat16) {
  in_bfloat16 = before_ || wanted;
}

Bfloat16Products::~Bfloat16Products() { in_bfloat16 = before_; }

bool Bfloat16Products::Active() { return in_bfloat16; }

at::Tensor Operand(const at::Tensor& tensor) {
  return in_bfloat16 && tensor.scalar_type() == at::kFloat ? tensor.to(at::kBFloat16) : tensor;
}

at::Tensor Widened(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

at::Tensor Product(const at::Tensor& a, const at::Tensor& b) {
  return at::matmul(Operand(a), Operand(b)).to(a.scalar_type());
}

}  // namespace lengthwise::models
