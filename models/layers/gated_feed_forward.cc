#include "models/layers/gated_feed_forward.h"

#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/gelu_backward.h"
#include "ATen/ops/mul.h"
#include "models/kernels/gated_gelu.h"
#include "models/layers/layers.h"
#include "models/layers/on_threads.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

c10::string_view Approximation(bool tanh) { return tanh ? "tanh" : "none"; }

// `rows` is contiguous float32 on the CPU.
at::Tensor GateInOnePass(const at::Tensor& rows) {
  std::vector<int64_t> shape = rows.sizes().vec();
  const int64_t width = shape.back() /= 2;
  at::Tensor gated = at::empty(shape, rows.options());
  kernels::GatedGelu(gated.numel() / width, width, rows.const_data_ptr<float>(),
                     gated.mutable_data_ptr<float>(), OnThreads);
  return gated;
}

at::Tensor DifferentiateInOnePass(const at::Tensor& rows, const at::Tensor& gradient) {
  const int64_t width = gradient.size(-1);
  at::Tensor rows_gradient = at::empty_like(rows);
  kernels::GatedGeluBackward(gradient.numel() / width, width, rows.const_data_ptr<float>(),
                             gradient.const_data_ptr<float>(),
                             rows_gradient.mutable_data_ptr<float>(), OnThreads);
  return rows_gradient;
}

// Computes gelu(gate) * value of rows [gate, value]. Saves only the rows for the backward pass and
// recomputes the rest.
class Gate : public torch::autograd::Function<Gate> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, bool tanh) {
    context->save_for_backward({rows});
    context->saved_data["tanh"] = tanh;
    if (InOnePass(rows, tanh)) return GateInOnePass(rows);
    const auto parts = rows.chunk(2, -1);
    return at::gelu(parts[0], Approximation(tanh)).mul_(parts[1]);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor rows = context->get_saved_variables()[0];
    const at::Tensor gradient = gradients[0].contiguous();
    const bool tanh = context->saved_data["tanh"].toBool();
    if (InOnePass(rows, tanh)) return {DifferentiateInOnePass(rows, gradient), at::Tensor()};
    const auto parts = rows.chunk(2, -1);
    at::Tensor rows_gradient = at::empty_like(rows);
    auto part_gradients = rows_gradient.chunk(2, -1);
    at::gelu_backward_out(part_gradients[0], gradient.mul(parts[1]), parts[0], Approximation(tanh));
    at::mul_out(part_gradients[1], gradient, at::gelu(parts[0], Approximation(tanh)));
    return {rows_gradient, at::Tensor()};
  }

 private:
  static bool InOnePass(const at::Tensor& rows, bool tanh) {
    return !tanh && rows.device().is_cpu() && rows.scalar_type() == at::kFloat &&
           rows.is_contiguous();
  }
};

}  // namespace

at::Tensor GatedFeedForward(const at::Tensor& features,
                            const GatedFeedForwardParameters& parameters, Gelu gelu) {
  const at::Tensor gated =
      Gate::apply(Linear(Operand(features), parameters.inputs), gelu == Gelu::kTanh);
  return Linear(gated, parameters.output);
}

}  // namespace lengthwise::models
