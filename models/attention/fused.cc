#include "models/attention/fused.h"

#include <optional>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "c10/core/GradMode.h"
#include "models/kernels/attention.h"
#include "models/layers/on_threads.h"
#include "models/layers/products.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Part 0, 1 or 2 of [P, B, n, 3 d], or part 0 of [P, B, n, d].
template <typename T>
kernels::HeadVectors<T> Part(T* data, const at::Tensor& features, int64_t d, int64_t heads,
                             int64_t part) {
  return {.data = data + part * d,
          .member = features.stride(0),
          .sequence = features.stride(1),
          .head = d / heads,
          .token = features.stride(2)};
}

kernels::HeadVectors<const float> Part(const at::Tensor& features, int64_t d, int64_t heads,
                                       int64_t part) {
  return Part(features.const_data_ptr<float>(), features, d, heads, part);
}

kernels::HeadVectors<float> MutablePart(at::Tensor& features, int64_t d, int64_t heads,
                                        int64_t part) {
  return Part(features.mutable_data_ptr<float>(), features, d, heads, part);
}

at::Tensor ContiguousOrUndefined(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

const float* DataOrNull(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

float* MutableDataOrNull(at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

AttentionTerms Contiguous(const AttentionTerms& terms) {
  return {.additive = ContiguousOrUndefined(terms.additive),
          .relative = ContiguousOrUndefined(terms.relative),
          .toeplitz = terms.toeplitz,
          .content_bias = ContiguousOrUndefined(terms.content_bias),
          .position_bias = ContiguousOrUndefined(terms.position_bias),
          .rotation = ContiguousOrUndefined(terms.rotation),
          .causal = terms.causal};
}

// All tensors are contiguous and outlive the result.
kernels::AttentionInputs Inputs(const at::Tensor& qkv, int64_t heads, int64_t first, int64_t count,
                                const AttentionTerms& terms) {
  const int64_t d = qkv.size(3) / 3;
  kernels::AttentionInputs inputs = {
      .shape = {.members = qkv.size(0),
                .sequences = qkv.size(1),
                .heads = heads,
                .queries = count,
                .keys = qkv.size(2),
                .head_size = d / heads},
      .queries = Part(qkv, d, heads, 0),
      .keys = Part(qkv, d, heads, 1),
      .values = Part(qkv, d, heads, 2),
      .terms = {.additive = DataOrNull(terms.additive),
                .additive_shared = terms.additive.defined() && terms.additive.size(0) == 1,
                .relative = DataOrNull(terms.relative),
                .toeplitz = terms.toeplitz,
                .content_bias = DataOrNull(terms.content_bias),
                .position_bias = DataOrNull(terms.position_bias),
                .rotation = DataOrNull(terms.rotation),
                .causal = terms.causal,
                .first_query = first}};
  inputs.queries.data += first * inputs.queries.token;
  return inputs;
}

// Absent terms are std::nullopt, for which LibTorch expects no gradient.
using MaybeTensor = std::optional<at::Tensor>;

MaybeTensor Maybe(const at::Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

// An undefined tensor unless the gradient of `tensor` is wanted.
at::Tensor GradientOf(const at::Tensor& tensor, at::IntArrayRef shape) {
  if (!tensor.defined() || !tensor.requires_grad()) return {};
  return at::empty(shape, tensor.options());
}

// Everything is contiguous.
class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const MaybeTensor& additive, const MaybeTensor& relative,
                            const MaybeTensor& content_bias, const MaybeTensor& position_bias,
                            const MaybeTensor& rotation, int64_t heads, bool toeplitz,
                            bool causal) {
    const AttentionTerms terms = {.additive = additive.value_or(at::Tensor()),
                                  .relative = relative.value_or(at::Tensor()),
                                  .toeplitz = toeplitz,
                                  .content_bias = content_bias.value_or(at::Tensor()),
                                  .position_bias = position_bias.value_or(at::Tensor()),
                                  .rotation = rotation.value_or(at::Tensor()),
                                  .causal = causal};
    const int64_t members = qkv.size(0), sequences = qkv.size(1), n = qkv.size(2);
    const int64_t d = qkv.size(3) / 3;
    at::Tensor output = at::empty({members, sequences, n, d}, qkv.options());
    at::Tensor log_sum_exp = at::empty({members, sequences, heads, n}, qkv.options());
    kernels::AttentionForward(Inputs(qkv, heads, 0, n, terms), MutablePart(output, d, heads, 0),
                              log_sum_exp.mutable_data_ptr<float>(), OnThreads);
    context->save_for_backward({qkv, terms.additive, terms.relative, terms.content_bias,
                                terms.position_bias, terms.rotation, output, log_sum_exp});
    context->saved_data["heads"] = heads;
    context->saved_data["toeplitz"] = toeplitz;
    context->saved_data["causal"] = causal;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const AttentionTerms terms = {.additive = saved[1],
                                  .relative = saved[2],
                                  .toeplitz = context->saved_data["toeplitz"].toBool(),
                                  .content_bias = saved[3],
                                  .position_bias = saved[4],
                                  .rotation = saved[5],
                                  .causal = context->saved_data["causal"].toBool()};
    const at::Tensor& output = saved[6];
    const at::Tensor& log_sum_exp = saved[7];
    const int64_t heads = context->saved_data["heads"].toInt();
    const int64_t members = qkv.size(0), n = qkv.size(2), d = qkv.size(3) / 3;

    const at::Tensor output_gradient = output_gradients[0].contiguous();
    at::Tensor qkv_gradient = at::empty_like(qkv);
    at::Tensor additive_gradient = GradientOf(terms.additive, {members, heads, n, n});
    at::Tensor relative_gradient, content_gradient, position_gradient;
    if (terms.relative.defined()) {
      relative_gradient = GradientOf(terms.relative, terms.relative.sizes());
      content_gradient = GradientOf(terms.content_bias, terms.content_bias.sizes());
      position_gradient = GradientOf(terms.position_bias, terms.position_bias.sizes());
    }
    kernels::AttentionBackward(Inputs(qkv, heads, 0, n, terms), Part(output, d, heads, 0),
                               Part(output_gradient, d, heads, 0),
                               log_sum_exp.const_data_ptr<float>(),
                               {.queries = MutablePart(qkv_gradient, d, heads, 0),
                                .keys = MutablePart(qkv_gradient, d, heads, 1),
                                .values = MutablePart(qkv_gradient, d, heads, 2),
                                .additive = MutableDataOrNull(additive_gradient),
                                .relative = MutableDataOrNull(relative_gradient),
                                .content_bias = MutableDataOrNull(content_gradient),
                                .position_bias = MutableDataOrNull(position_gradient)},
                               OnThreads);
    if (additive_gradient.defined() && terms.additive.size(0) == 1 && members > 1) {
      additive_gradient = additive_gradient.sum(0, /*keepdim=*/true);
    }
    return {qkv_gradient, additive_gradient, relative_gradient, content_gradient, position_gradient,
            at::Tensor(), at::Tensor(),      at::Tensor(),      at::Tensor()};
  }
};

}  // namespace

bool CanFuse(const at::Tensor& tensor) {
  return tensor.device().is_cpu() &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16);
}

at::Tensor FusedAttention(const at::Tensor& qkv, int64_t heads, const AttentionTerms& given_terms) {
  const AttentionTerms terms = Contiguous(given_terms);
  return Fused::apply(Widened(qkv).contiguous(), Maybe(terms.additive), Maybe(terms.relative),
                      Maybe(terms.content_bias), Maybe(terms.position_bias), Maybe(terms.rotation),
                      heads, terms.toeplitz, terms.causal);
}

at::Tensor FusedAttentionRows(const at::Tensor& given_qkv, int64_t heads, int64_t first,
                              int64_t count, const AttentionTerms& given_terms) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor qkv = Widened(given_qkv).contiguous();
  const AttentionTerms terms = Contiguous(given_terms);
  const int64_t d = qkv.size(3) / 3;
  at::Tensor output = at::empty({qkv.size(0), qkv.size(1), count, d}, qkv.options());
  kernels::AttentionForward(Inputs(qkv, heads, first, count, terms),
                            MutablePart(output, d, heads, 0), /*log_sum_exp=*/nullptr, OnThreads);
  return output;
}

}  // namespace lengthwise::models
