#include "models/layers/add_layer_norm.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "models/kernels/add_layer_norm.h"
#include "models/layers/layers.h"
#include "models/layers/on_threads.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::RowsShape Shape(const at::Tensor& features) {
  return {.members = features.size(0),
          .rows = features.size(1) * features.size(2),
          .width = features.size(3)};
}

// All tensors are contiguous.
class FusedAddLayerNorm : public torch::autograd::Function<FusedAddLayerNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                            const at::Tensor& scale, const at::Tensor& offset) {
    const kernels::RowsShape shape = Shape(a);
    at::Tensor y = at::empty_like(a), x = at::empty_like(a);
    at::Tensor r = at::empty({shape.members, shape.rows}, a.options());
    kernels::AddLayerNorm(shape, kLayerNormEpsilon, a.const_data_ptr<float>(),
                          b.const_data_ptr<float>(), scale.const_data_ptr<float>(),
                          offset.const_data_ptr<float>(),
                          {.y = y.mutable_data_ptr<float>(),
                           .x = x.mutable_data_ptr<float>(),
                           .r = r.mutable_data_ptr<float>()},
                          OnThreads);
    context->save_for_backward({x, r, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &r = saved[1], &scale = saved[2];
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor sum = at::empty_like(x), scale_gradient = at::empty_like(scale),
               offset_gradient = at::empty_like(scale);
    kernels::AddLayerNormBackward(Shape(x), x.const_data_ptr<float>(), r.const_data_ptr<float>(),
                                  scale.const_data_ptr<float>(), gradient.const_data_ptr<float>(),
                                  {.sum = sum.mutable_data_ptr<float>(),
                                   .scale = scale_gradient.mutable_data_ptr<float>(),
                                   .offset = offset_gradient.mutable_data_ptr<float>()},
                                  OnThreads);
    return {sum, sum, scale_gradient, offset_gradient};
  }
};

}  // namespace

at::Tensor AddLayerNorm(const at::Tensor& given_a, const at::Tensor& given_b,
                        const at::Tensor& scale, const at::Tensor& offset) {
  const at::Tensor a = Widened(given_a), b = Widened(given_b);
  if (!a.device().is_cpu() || a.scalar_type() != at::kFloat) {
    return LayerNorm(a.add(b), scale, offset);
  }
  return FusedAddLayerNorm::apply(a.contiguous(), b.contiguous(), scale.contiguous(),
                                  offset.contiguous());
}

}  // namespace lengthwise::models
