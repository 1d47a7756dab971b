#include "models/layers/norms.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/layer_norm.h"
#include "ATen/ops/rms_norm.h"
#include "models/kernels/norms.h"
#include "models/kernels/rows_cuda.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/layers.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [P, d] -> [P, 1, 1, d]
at::Tensor PerFeature(const at::Tensor& parameter) { return parameter.unsqueeze(1).unsqueeze(1); }

// Tensors are contiguous; scale and offset may have a larger stride between members, the same for
// both. On a GPU, b may be bfloat16.
class FusedAddLayerNorm : public torch::autograd::Function<FusedAddLayerNorm> {
 public:
  // Returns the norm and, on a GPU if `for_products`, its copy in bfloat16.
  static variable_list forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                               const at::Tensor& scale, const at::Tensor& offset,
                               bool for_products) {
    kernels::RowsShape shape = RowsOf(a);
    shape.parameter_stride = scale.stride(0);
    // A copy that nothing used has no gradient.
    context->set_materialize_grads(false);
    at::Tensor operand;
    if (for_products) operand = at::empty_like(a, a.options().dtype(at::kBFloat16));
    at::Tensor y = at::empty_like(a), x = at::empty_like(a);
    at::Tensor r = at::empty({shape.members, shape.rows}, a.options());
    const kernels::AddLayerNormResult result = {.y = y.mutable_data_ptr<float>(),
                                                .x = x.mutable_data_ptr<float>(),
                                                .r = r.mutable_data_ptr<float>()};
    const auto* scales = scale.const_data_ptr<float>();
    const auto* offsets = offset.const_data_ptr<float>();
    if (a.is_cpu()) {
      kernels::AddLayerNorm(shape, kLayerNormEpsilon, a.const_data_ptr<float>(),
                            b.const_data_ptr<float>(), scales, offsets, result, OnThreads);
    } else {
      OnStream(a.device(), [&](auto* stream) {
        return WithKernelType(b.scalar_type(), [&](auto type) {
          using T = decltype(type);
          return kernels::AddLayerNormCuda<T>(
              {.shape = shape,
               .epsilon = kLayerNormEpsilon,
               .a = a.const_data_ptr<float>(),
               .b = static_cast<const T*>(b.const_data_ptr()),
               .scale = scales,
               .offset = offsets,
               .result = result,
               .operand = operand.defined() ? MutableBFloat16Of(operand) : nullptr},
              stream);
        });
      });
    }
    context->save_for_backward({x, r, scale});
    context->saved_data["type"] = b.scalar_type();
    if (operand.defined()) return {y, operand};
    return {y};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &r = saved[1], &scale = saved[2];
    at::Tensor gradient, of_operand;
    if (gradients[0].defined()) gradient = gradients[0].contiguous();
    if (gradients.size() > 1 && gradients[1].defined()) of_operand = gradients[1].contiguous();
    kernels::RowsShape shape = RowsOf(x);
    shape.parameter_stride = scale.stride(0);
    at::Tensor sum = at::empty_like(x), scale_gradient = at::empty(scale.sizes(), scale.options()),
               offset_gradient = at::empty_like(scale_gradient);
    const kernels::AddLayerNormGradients to = {.sum = sum.mutable_data_ptr<float>(),
                                               .scale = scale_gradient.mutable_data_ptr<float>(),
                                               .offset = offset_gradient.mutable_data_ptr<float>()};
    const auto* normalised = x.const_data_ptr<float>();
    const auto* rs = r.const_data_ptr<float>();
    const auto* scales = scale.const_data_ptr<float>();
    const auto* y_gradient = gradient.defined() ? gradient.const_data_ptr<float>() : nullptr;
    if (x.is_cpu()) {
      kernels::AddLayerNormBackward(shape, normalised, rs, scales, y_gradient, to, OnThreads);
      return {sum, sum, scale_gradient, offset_gradient, at::Tensor()};
    }
    const at::ScalarType type = context->saved_data["type"].toScalarType();
    at::Tensor b_gradient =
        type == at::kFloat ? at::Tensor() : at::empty_like(x, x.options().dtype(type));
    at::Tensor workspace = at::empty({kernels::RowsWorkspaceCuda(shape)}, x.options());
    OnStream(x.device(), [&](auto* stream) {
      return WithKernelType(type, [&](auto kernel_type) {
        using T = decltype(kernel_type);
        return kernels::AddLayerNormBackwardCuda<T>(
            {.shape = shape,
             .x = normalised,
             .r = rs,
             .scale = scales,
             .y_gradient = y_gradient,
             .operand_gradient = of_operand.defined() ? BFloat16Of(of_operand) : nullptr,
             .gradients = to,
             .b_gradient =
                 b_gradient.defined() ? static_cast<T*>(b_gradient.mutable_data_ptr()) : nullptr},
            workspace.mutable_data_ptr<float>(), stream);
      });
    });
    return {sum, b_gradient.defined() ? b_gradient : sum, scale_gradient, offset_gradient,
            at::Tensor()};
  }
};

bool CanFuse(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kFloat || !HasKernel(FusedOperation::kAddLayerNorm, a)) return false;
  if (a.is_cpu()) return b.scalar_type() == at::kFloat;
  return HasKernelType(b.scalar_type()) && a.size(3) <= kernels::kMaxCudaNormWidth;
}

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

at::Tensor LayerNorm(const at::Tensor& features, const at::Tensor& scale,
                     const at::Tensor& offset) {
  const int64_t d = features.size(3);
  if (features.size(0) == 1) {
    return at::layer_norm(features, {d}, scale.squeeze(0), offset.squeeze(0), kLayerNormEpsilon);
  }
  return at::layer_norm(features, {d}, {}, {}, kLayerNormEpsilon)
      .mul(PerFeature(scale))
      .add(PerFeature(offset));
}

Normed AddLayerNorm(const at::Tensor& given_a, const at::Tensor& given_b, const at::Tensor& scale,
                    const at::Tensor& offset) {
  const at::Tensor a = Widened(given_a), b = given_b.is_cpu() ? Widened(given_b) : given_b;
  if (!CanFuse(a, b)) {
    const at::Tensor normed = LayerNorm(a.add(b), scale, offset);
    return {normed, Operand(normed)};
  }
  at::Tensor scales = ByMember(scale), offsets = ByMember(offset);
  if (scales.stride(0) != offsets.stride(0)) {
    scales = scales.contiguous();
    offsets = offsets.contiguous();
  }
  const bool for_products = a.is_cuda() && Bfloat16Products::Active();
  const variable_list results =
      FusedAddLayerNorm::apply(a.contiguous(), b.contiguous(), scales, offsets, for_products);
  return {results[0], for_products ? results[1] : Operand(results[0])};
}

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
