#include "models/layers/fused_linear.h"

#include <cstdint>
#include <optional>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "models/kernels/linear.h"
#include "models/layers/on_threads.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kLeastRows = 32;
constexpr int64_t kMostColumns = 1024;

kernels::LinearShape Shape(const at::Tensor& features, const at::Tensor& weight) {
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
    kernels::Linear(Shape(features, weight), features.const_data_ptr<float>(),
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
    const kernels::LinearShape shape = Shape(features, weight);
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

}  // namespace

bool CanFuseLinear(const at::Tensor& features, const at::Tensor& weight) {
  return features.device().is_cpu() && features.scalar_type() == at::kFloat &&
         !Bfloat16Products::Active() && features.size(1) * features.size(2) >= kLeastRows &&
         weight.size(1) <= kMostColumns && weight.size(2) <= kMostColumns;
}

at::Tensor FusedLinear(const at::Tensor& features, const at::Tensor& weight,
                       const at::Tensor& bias) {
  return Fused::apply(features.contiguous(), weight.contiguous(),
                      bias.defined() ? std::optional<at::Tensor>(bias.contiguous()) : std::nullopt);
}

}  // namespace lengthwise::models
