#include "models/layers/feed_forward.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/relu.h"
#include "models/kernels/feed_forward.h"
#include "models/layers/layers.h"
#include "models/layers/on_threads.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::FeedForwardShape Shape(const at::Tensor& features, const at::Tensor& up) {
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
    const kernels::FeedForwardShape shape = Shape(x, up);
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
    const kernels::FeedForwardShape shape = Shape(x, up);
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

}  // namespace

at::Tensor FeedForward(const at::Tensor& features, const FeedForwardParameters& parameters) {
  const auto& [up, up_bias, down, down_bias] = parameters;
  if (!features.device().is_cpu() || features.scalar_type() != at::kFloat ||
      Bfloat16Products::Active()) {
    return Linear(at::relu(Linear(Operand(features), up, up_bias)), down, down_bias);
  }
  return FusedFeedForward::apply(features.contiguous(), up.contiguous(), up_bias.contiguous(),
                                 down.contiguous(), down_bias.contiguous());
}

}  // namespace lengthwise::models
