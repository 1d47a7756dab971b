#include "models/layers/gated_feed_forward.h"

#include "ATen/ops/empty_like.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/gelu_backward.h"
#include "ATen/ops/mul.h"
#include "models/layers/layers.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

c10::string_view Approximation(bool tanh) { return tanh ? "tanh" : "none"; }

// gelu(gate) * value of rows [gate, value]. It keeps the rows alone and computes the rest again.
class Gate : public torch::autograd::Function<Gate> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, bool tanh) {
    context->save_for_backward({rows});
    context->saved_data["tanh"] = tanh;
    const auto parts = rows.chunk(2, -1);
    return at::gelu(parts[0], Approximation(tanh)).mul_(parts[1]);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor rows = context->get_saved_variables()[0];
    const c10::string_view approximation = Approximation(context->saved_data["tanh"].toBool());
    const auto parts = rows.chunk(2, -1);
    at::Tensor rows_gradient = at::empty_like(rows);
    auto part_gradients = rows_gradient.chunk(2, -1);
    at::gelu_backward_out(part_gradients[0], gradients[0].mul(parts[1]), parts[0], approximation);
    at::mul_out(part_gradients[1], gradients[0], at::gelu(parts[0], approximation));
    return {rows_gradient, at::Tensor()};
  }
};

}  // namespace

at::Tensor GatedFeedForward(const at::Tensor& features,
                            const GatedFeedForwardParameters& parameters, Gelu gelu) {
  const at::Tensor gated = Gate::apply(Linear(features, parameters.inputs), gelu == Gelu::kTanh);
  return Linear(gated, parameters.output);
}

}  // namespace lengthwise::models
