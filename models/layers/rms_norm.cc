#include "models/layers/rms_norm.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/rms_norm.h"
#include "models/kernels/rms_norm.h"
#include "models/layers/kernel_type.h"
#include "models/layers/on_threads.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// All tensors are contiguous.
class FusedRmsNorm : public torch::autograd::Function<FusedRmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& scale) {
    const kernels::RowsShape shape = RowsOf(x);
    at::Tensor y = at::empty_like(x), r = at::empty({shape.members, shape.rows}, x.options());
    kernels::RmsNorm(shape, kRmsNormEpsilon, x.const_data_ptr<float>(),
                     scale.const_data_ptr<float>(), y.mutable_data_ptr<float>(),
                     r.mutable_data_ptr<float>(), OnThreads);
    context->save_for_backward({x, r, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &r = saved[1], &scale = saved[2];
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor x_gradient = at::empty_like(x), scale_gradient = at::empty_like(scale);
    kernels::RmsNormBackward(RowsOf(x), x.const_data_ptr<float>(), r.const_data_ptr<float>(),
                             scale.const_data_ptr<float>(), gradient.const_data_ptr<float>(),
                             x_gradient.mutable_data_ptr<float>(),
                             scale_gradient.mutable_data_ptr<float>(), OnThreads);
    return {x_gradient, scale_gradient};
  }
};

}  // namespace

at::Tensor RmsNorm(const at::Tensor& given, const at::Tensor& scale) {
  const at::Tensor features = Widened(given);
  if (features.device().is_cpu() && features.scalar_type() == at::kFloat) {
    return FusedRmsNorm::apply(features.contiguous(), scale.contiguous());
  }
  const int64_t d = features.size(3);
  if (features.size(0) == 1) return at::rms_norm(features, {d}, scale.squeeze(0), kRmsNormEpsilon);
  return at::rms_norm(features, {d}, {}, kRmsNormEpsilon).mul(scale.unsqueeze(1).unsqueeze(1));
}

}  // namespace lengthwise::models
