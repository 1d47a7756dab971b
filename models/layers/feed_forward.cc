#include "models/layers/feed_forward.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/gelu_backward.h"
#include "ATen/ops/mul.h"
#include "ATen/ops/relu.h"
#include "models/kernels/gated_gelu.h"
#include "models/kernels/linear.h"
#include "models/kernels/rows_cuda.h"
#include "models/kernels/tensor_feed_forward_cuda.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::FeedForwardShape FeedForwardShapeOf(const at::Tensor& features, const at::Tensor& up) {
  return {.members = features.size(0),
          .rows = features.size(1) * features.size(2),
          .features = features.size(3),
          .hidden = up.size(2)};
}

// All tensors are contiguous.
class FusedFeedForward : public torch::autograd::Function<FusedFeedForward> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const at::Tensor& up_bias, const at::Tensor& down,
                            const at::Tensor& down_bias) {
    const kernels::FeedForwardShape shape = FeedForwardShapeOf(x, up);
    at::Tensor hidden = at::empty({shape.members, shape.rows, shape.hidden}, x.options());
    at::Tensor y = at::empty_like(x);
    kernels::FeedForward(shape,
                         {.up = up.const_data_ptr<float>(),
                          .up_bias = up_bias.const_data_ptr<float>(),
                          .down = down.const_data_ptr<float>(),
                          .down_bias = down_bias.const_data_ptr<float>()},
                         x.const_data_ptr<float>(), hidden.mutable_data_ptr<float>(),
                         y.mutable_data_ptr<float>(), OnThreads);
    context->save_for_backward({x, up, down, hidden});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &up = saved[1], &down = saved[2], &hidden = saved[3];
    const kernels::FeedForwardShape shape = FeedForwardShapeOf(x, up);
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor x_gradient = at::empty_like(x), up_gradient = at::empty_like(up),
               up_bias_gradient = at::empty({shape.members, shape.hidden}, x.options()),
               down_gradient = at::empty_like(down),
               down_bias_gradient = at::empty({shape.members, shape.features}, x.options());
    kernels::FeedForwardBackward(
        shape, {.up = up.const_data_ptr<float>(), .down = down.const_data_ptr<float>()},
        x.const_data_ptr<float>(), hidden.const_data_ptr<float>(), gradient.const_data_ptr<float>(),
        {.x = x_gradient.mutable_data_ptr<float>(),
         .up = up_gradient.mutable_data_ptr<float>(),
         .up_bias = up_bias_gradient.mutable_data_ptr<float>(),
         .down = down_gradient.mutable_data_ptr<float>(),
         .down_bias = down_bias_gradient.mutable_data_ptr<float>()},
        OnThreads);
    return {x_gradient, up_gradient, up_bias_gradient, down_gradient, down_bias_gradient};
  }
};

// On a GPU: LibTorch's products, and between them one pass over the hidden layer each way. x, up
// and down are float32 or bfloat16, biases float32. x is contiguous, and so is each member's
// up_bias.
class CudaFeedForward : public torch::autograd::Function<CudaFeedForward> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const at::Tensor& up_bias, const at::Tensor& down,
                            const at::Tensor& down_bias) {
    at::Tensor hidden = Linear(x, up);
    OnStream(x.device(), [&](auto* stream) {
      return WithKernelType(hidden.scalar_type(), [&](auto type) {
        kernels::RowsShape shape = RowsOf(hidden);
        shape.parameter_stride = up_bias.stride(0);
        return kernels::BiasReluCuda(shape, up_bias.const_data_ptr<float>(),
                                     static_cast<decltype(type)*>(hidden.mutable_data_ptr()),
                                     stream);
      });
    });
    context->save_for_backward({x, up, down, hidden});
    return Linear(hidden, down, down_bias.to(x.scalar_type()));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &up = saved[1], &down = saved[2], &hidden = saved[3];
    const at::Tensor gradient = gradients[0].contiguous();
    const kernels::RowsShape shape = RowsOf(hidden);
    at::Tensor hidden_gradient = Linear(gradient, down.transpose(1, 2));
    const auto sums = x.options().dtype(at::kFloat);
    at::Tensor up_bias_gradient = at::empty({shape.members, shape.width}, sums);
    at::Tensor workspace = at::empty({kernels::RowsWorkspaceCuda(shape)}, sums);
    OnStream(x.device(), [&](auto* stream) {
      return WithKernelType(hidden.scalar_type(), [&](auto type) {
        using T = decltype(type);
        return kernels::BiasReluBackwardCuda(shape, static_cast<const T*>(hidden.const_data_ptr()),
                                             static_cast<T*>(hidden_gradient.mutable_data_ptr()),
                                             up_bias_gradient.mutable_data_ptr<float>(),
                                             workspace.mutable_data_ptr<float>(), stream);
      });
    });
    return {Linear(hidden_gradient, up.transpose(1, 2)), WeightGradient(x, hidden_gradient),
            up_bias_gradient, WeightGradient(hidden, gradient),
            gradient.sum(at::IntArrayRef{1, 2}, /*keepdim=*/false, at::kFloat)};
  }

 private:
  static at::Tensor WeightGradient(const at::Tensor& features, const at::Tensor& gradient) {
    return MatrixProduct(features.flatten(1, 2).transpose(1, 2), gradient.flatten(1, 2));
  }
};

// On tensor cores, without a hidden layer in memory. x is bfloat16, parameters are float32, and
// each member's biases are contiguous.
class TensorFeedForward : public torch::autograd::Function<TensorFeedForward> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& up,
                            const at::Tensor& up_bias, const at::Tensor& down,
                            const at::Tensor& down_bias) {
    const variable_list inputs = {Rounded(x), Rounded(up), up_bias, Rounded(down)};
    at::Tensor y = at::empty_like(inputs[0]);
    kernels::TensorFeedForwardInputs call = InputsOf(inputs);
    call.down_bias = down_bias.const_data_ptr<float>();
    call.down_stride = down_bias.stride(0);
    OnStream(y.device(), [&](auto* stream) {
      return kernels::TensorFeedForwardCuda(call, MutableBFloat16Of(y), stream);
    });
    context->save_for_backward(inputs);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const kernels::TensorFeedForwardInputs inputs = InputsOf(saved);
    const at::Tensor gradient = Rounded(gradients[0]);
    const auto sums = gradient.options().dtype(at::kFloat);
    at::Tensor x_gradient = at::empty_like(saved[0]);
    at::Tensor of_parameters =
        at::empty({inputs.members, kernels::kTensorFeedForwardNumbers}, sums);
    OnStream(gradient.device(), [&](auto* stream) {
      at::Tensor workspace = at::empty({kernels::TensorFeedForwardWorkspace(inputs)}, sums);
      return kernels::TensorFeedForwardBackwardCuda(
          inputs, BFloat16Of(gradient), MutableBFloat16Of(x_gradient),
          of_parameters.mutable_data_ptr<float>(), workspace.mutable_data_ptr<float>(), stream);
    });
    constexpr int64_t kFeatures = kernels::kTensorFeatures, kHidden = kernels::kTensorHidden;
    const auto parts = of_parameters.split_with_sizes(
        {kFeatures * kHidden, kHidden * kFeatures, kHidden, kFeatures}, 1);
    return {x_gradient, parts[0].view({inputs.members, kFeatures, kHidden}), parts[2],
            parts[1].view({inputs.members, kHidden, kFeatures}), parts[3]};
  }

 private:
  // Of x, up, up_bias and down.
  static kernels::TensorFeedForwardInputs InputsOf(const variable_list& given) {
    const at::Tensor& x = given[0];
    return {.members = x.size(0),
            .rows = x.size(1) * x.size(2),
            .x = BFloat16Of(x),
            .up = BFloat16Of(given[1]),
            .down = BFloat16Of(given[3]),
            .up_bias = given[2].const_data_ptr<float>(),
            .up_stride = given[2].stride(0)};
  }
};

// On the CPU, for float32 alone.
bool CanFuse(const at::Tensor& x) {
  return (x.is_cpu() ? x.scalar_type() == at::kFloat : HasKernelType(x.scalar_type())) &&
         HasKernel(FusedOperation::kFeedForward, x);
}

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

bool CanUseTensorCores(const at::Tensor& x, const FeedForwardParameters& parameters) {
  return CanFuse(x) && x.is_cuda() && x.scalar_type() == at::kBFloat16 &&
         x.size(3) == kernels::kTensorFeatures && parameters.up.size(2) == kernels::kTensorHidden &&
         parameters.up.scalar_type() == at::kFloat;
}

at::Tensor FeedForward(const at::Tensor& features, const FeedForwardParameters& parameters) {
  const auto& [up, up_bias, down, down_bias] = parameters;
  const at::Tensor x = Operand(features);
  if (!CanFuse(x)) return Linear(at::relu(Linear(x, up, up_bias)), down, down_bias);
  if (x.is_cpu()) {
    return FusedFeedForward::apply(x.contiguous(), up.contiguous(), up_bias.contiguous(),
                                   down.contiguous(), down_bias.contiguous());
  }
  if (CanUseTensorCores(x, parameters)) {
    return TensorFeedForward::apply(x, up, ByMember(up_bias), down, ByMember(down_bias));
  }
  return CudaFeedForward::apply(x.contiguous(), Operand(up), ByMember(up_bias), Operand(down),
                                down_bias);
}

at::Tensor GatedFeedForward(const at::Tensor& features,
                            const GatedFeedForwardParameters& parameters, Gelu gelu) {
  const at::Tensor gated =
      Gate::apply(Linear(Operand(features), parameters.inputs), gelu == Gelu::kTanh);
  return Linear(gated, parameters.output);
}

}  // namespace lengthwise::models
