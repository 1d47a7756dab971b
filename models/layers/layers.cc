#include "models/layers/layers.h"

#include <cstdint>
#include <optional>

#include "ATen/ops/arange.h"
#include "ATen/ops/embedding.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "models/kernels/linear.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool in_bfloat16 = false;

constexpr int64_t kLeastRows = 32;
constexpr int64_t kMostColumns = 1024;

kernels::LinearShape ShapeOf(const at::Tensor& features, const at::Tensor& weight) {
  return {.members = features.size(0),
          .rows = features.size(1) * features.size(2),
          .inputs = weight.size(1),
          .outputs = weight.size(2)};
}

// Operands are contiguous, all of them float32 or bfloat16. As in products.cc, sums are float32,
// and what is bfloat16 is rounded once.
class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& features,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
    const at::Tensor x = Widened(features), w = Widened(weight),
                     b = bias.has_value() ? Widened(*bias) : at::Tensor();
    at::Tensor y = at::empty({x.size(0), x.size(1), x.size(2), w.size(2)}, x.options());
    kernels::Linear(ShapeOf(x, w), x.const_data_ptr<float>(), w.const_data_ptr<float>(),
                    b.defined() ? b.const_data_ptr<float>() : nullptr, y.mutable_data_ptr<float>(),
                    OnThreads);
    context->save_for_backward({features, weight});
    context->saved_data["bias"] = bias.has_value();
    return y.to(features.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor x = Widened(saved[0]), w = Widened(saved[1]),
                     gradient = Widened(gradients[0]).contiguous();
    const kernels::LinearShape shape = ShapeOf(x, w);
    at::Tensor of_x, of_w = at::empty_like(w), of_bias;
    if (context->needs_input_grad(0)) {
      of_x = at::empty_like(x);
      kernels::LinearInputGradient(shape, gradient.const_data_ptr<float>(),
                                   w.const_data_ptr<float>(), of_x.mutable_data_ptr<float>(),
                                   OnThreads);
    }
    if (context->saved_data["bias"].toBool()) {
      of_bias = at::empty({shape.members, shape.outputs}, w.options());
    }
    kernels::LinearWeightGradient(shape, x.const_data_ptr<float>(),
                                  gradient.const_data_ptr<float>(), of_w.mutable_data_ptr<float>(),
                                  of_bias.defined() ? of_bias.mutable_data_ptr<float>() : nullptr,
                                  OnThreads);
    variable_list result = {of_x, of_w, of_bias};
    for (at::Tensor& one : result) {
      if (one.defined()) one = one.to(saved[0].scalar_type());
    }
    return result;
  }
};

// Returns true if our kernels support the operands and are faster: on the CPU, enough rows to
// amortize packing the weights, and weights that fit in a core's caches.
bool CanFuseLinear(const at::Tensor& x, const at::Tensor& w) {
  return x.is_cpu() && HasKernelType(x.scalar_type()) && x.size(1) * x.size(2) >= kLeastRows &&
         w.size(1) <= kMostColumns && w.size(2) <= kMostColumns;
}

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
  return MatrixProduct(Operand(a), Operand(b)).to(a.scalar_type());
}

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor x = Operand(features), w = Operand(weight),
                   b = bias.defined() ? Operand(bias) : bias;
  if (CanFuseLinear(x, w)) {
    const auto added = b.defined() ? std::optional<at::Tensor>(b.contiguous()) : std::nullopt;
    return Fused::apply(x.contiguous(), w.contiguous(), added).to(features.scalar_type());
  }
  const bool alone = x.size(0) == 1;
  const at::Tensor rows = x.flatten(alone ? 0 : 1, 2), matrix = alone ? w.squeeze(0) : w;
  const at::Tensor y = b.defined() ? MatrixProduct(rows, matrix, alone ? b.squeeze(0) : b)
                                   : MatrixProduct(rows, matrix);
  return y.view({x.size(0), x.size(1), x.size(2), w.size(2)}).to(features.scalar_type());
}

at::Tensor SplitHeads(const at::Tensor& features, int64_t heads) {
  return features.unflatten(3, {heads, features.size(3) / heads}).transpose(2, 3);
}

at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table) {
  const int64_t members = table.size(0), width = table.size(1);
  if (members == 1) return at::embedding(table.squeeze(0), tokens);
  // Looks up all members in one table, the concatenation of their tables.
  const at::Tensor first_row =
      at::arange(0, members * width, width, tokens.options()).view({members, 1, 1});
  return at::embedding(table.flatten(0, 1), tokens.add(first_row));
}

}  // namespace lengthwise::models
