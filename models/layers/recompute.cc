#include "models/layers/recompute.h"

#include <utility>

#include "c10/core/GradMode.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/layers.h"
#include "torch/csrc/autograd/autograd.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// State that the autograd graph carries from the forward to the backward pass.
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
    // A GPU's backward pass runs on another thread, so thread-local settings must be restored.
    const Bfloat16Products products(work.in_bfloat16);
    const KernelScope kernels(work.kernels);
    // Leaves of a separate graph. Their gradients are added to those of the whole graph.
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
