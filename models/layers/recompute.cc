#include "models/layers/recompute.h"

#include <utility>

#include "c10/core/GradMode.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/autograd.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the autograd graph carries from one pass to the other.
struct Work : torch::CustomClassHolder {
  Work(ParameterSet parameters, NetworkPart part)
      : parameters(std::move(parameters)), part(std::move(part)) {}

  const ParameterSet parameters;
  const NetworkPart part;
  const bool in_bfloat16 = Bfloat16Products::Active();
  const KernelChoice kernels = CurrentKernels();
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& features,
                            at::TensorList parameters, const c10::intrusive_ptr<Work>& work) {
    context->save_for_backward({features});
    context->saved_data["work"] =
        c10::IValue::make_capsule(c10::intrusive_ptr<torch::CustomClassHolder>(work));
    return work->part(work->parameters, features);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto capsule = context->saved_data["work"].toCapsule();
    const Work& work = static_cast<const Work&>(*capsule);
    const c10::AutoGradMode with_gradients(true);
    // Backward passes of a GPU run on a thread of LibTorch's.
    const Bfloat16Products products(work.in_bfloat16);
    const KernelScope kernels(work.kernels);
    // Leaves of a graph of their own, whose gradients go to those of the whole.
    variable_list inputs = {context->get_saved_variables()[0].detach().requires_grad_(true)};
    for (const at::Tensor& parameter : work.parameters.tensors()) {
      inputs.push_back(parameter.detach().requires_grad_(true));
    }
    const at::Tensor output =
        work.part(work.parameters.Replaced({inputs.begin() + 1, inputs.end()}), inputs.front());
    variable_list input_gradients =
        torch::autograd::grad({output}, inputs, {gradients[0]}, /*retain_graph=*/false,
                              /*create_graph=*/false, /*allow_unused=*/true);
    input_gradients.emplace_back();
    return input_gradients;
  }
};

}  // namespace

at::Tensor Recomputed(const ParameterSet& parameters, const at::Tensor& features,
                      NetworkPart part) {
  return Recompute::apply(features, at::TensorList(parameters.tensors()),
                          c10::make_intrusive<Work>(parameters, std::move(part)));
}

}  // namespace lengthwise::models
