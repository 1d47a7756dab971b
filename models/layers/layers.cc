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

// All tensors are contiguous.
class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& features,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
    at::Tensor y = at::empty({features.size(0), features.size(1), features.size(2), weight.size(2)},
                             features.options());
    kernels::Linear(ShapeOf(features, weight), features.const_data_ptr<float>(),
                    weight.const_data_ptr<float>(),
                    bias.has_value() ? bias->const_data_ptr<float>() : nullptr,
                    y.mutable_data_ptr<float>(), OnThreads);
    context->save_for_backward({features, weight});
    context->saved_data["bias"] = bias.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &features = saved[0], &weight = saved[1];
    const kernels::LinearShape shape = ShapeOf(features, weight);
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor features_gradient, bias_gradient;
    if (context->needs_input_grad(0)) {
      features_gradient = at::empty_like(features);
      kernels::LinearInputGradient(shape, gradient.const_data_ptr<float>(),
                                   weight.const_data_ptr<float>(),
                                   features_gradient.mutable_data_ptr<float>(), OnThreads);
    }
    at::Tensor weight_gradient = at::empty_like(weight);
    if (context->saved_data["bias"].toBool()) {
      bias_gradient = at::empty({shape.members, shape.outputs}, weight.options());
    }
    kernels::LinearWeightGradient(
        shape, features.const_data_ptr<float>(), gradient.const_data_ptr<float>(),
        weight_gradient.mutable_data_ptr<float>(),
        bias_gradient.defined() ? bias_gradient.mutable_data_ptr<float>() : nullptr, OnThreads);
    return {features_gradient, weight_gradient, bias_gradient};
  }
};

// Returns true if our kernels support the tensors and are faster: float32 on the CPU, enough rows
// to amortize packing the weights, and weights that fit in a core's caches.
bool CanFuseLinear(const at::Tensor& features, const at::Tensor& weight) {
  return features.device().is_cpu() && features.scalar_type() == at::kFloat &&
         !Bfloat16Products::Active() && features.size(1) * features.size(2) >= kLeastRows &&
         weight.size(1) <= kMostColumns && weight.size(2) <= kMostColumns;
}

// `bias` may be undefined.
at::Tensor FusedLinear(const at::Tensor& features, const at::Tensor& weight,
                       const at::Tensor& bias) {
  return Fused::apply(features.contiguous(), weight.contiguous(),
                      bias.defined() ? std::optional<at::Tensor>(bias.contiguous()) : std::nullopt);
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

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight) {
  if (CanFuseLinear(features, weight)) return FusedLinear(features, weight, at::Tensor());
  const int64_t members = features.size(0), rows = features.size(1), columns = features.size(2);
  const at::Tensor x = Operand(features), w = Operand(weight);
  const at::Tensor product = members == 1 ? MatrixProduct(x.flatten(0, 2), w.squeeze(0))
                                          : MatrixProduct(x.flatten(1, 2), w);
  return product.view({members, rows, columns, w.size(2)}).to(features.scalar_type());
}

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias) {
  if (CanFuseLinear(features, weight)) return FusedLinear(features, weight, bias);
  const int64_t members = features.size(0), rows = features.size(1), columns = features.size(2);
  const at::Tensor x = Operand(features), w = Operand(weight), b = Operand(bias);
  const at::Tensor sum = members == 1 ? MatrixProduct(x.flatten(0, 2), w.squeeze(0), b.squeeze(0))
                                      : MatrixProduct(x.flatten(1, 2), w, b);
  return sum.view({members, rows, columns, w.size(2)}).to(features.scalar_type());
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
