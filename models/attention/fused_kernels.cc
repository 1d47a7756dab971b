#include "models/attention/fused_kernels.h"

#include <type_traits>

#include "ATen/ops/empty.h"
#include "models/kernels/attention.h"
#include "models/kernels/attention_cuda.h"
#include "models/kernels/bfloat16.h"
#include "models/layers/on_stream.h"
#include "models/layers/on_threads.h"

namespace lengthwise::models {
namespace {

// Selects part 0, 1 or 2 of [P, B, n, 3 d], or part 0 of [P, B, n, d]. T is the kernels' type for
// the tensor's.
template <typename T>
kernels::HeadVectors<const T> Part(const at::Tensor& features, int64_t d, int64_t heads,
                                   int64_t part) {
  return {.data = static_cast<const T*>(features.const_data_ptr()) + part * d,
          .member = features.stride(0),
          .sequence = features.stride(1),
          .head = d / heads,
          .token = features.stride(2)};
}

template <typename T>
kernels::HeadVectors<T> MutablePart(at::Tensor& features, int64_t d, int64_t heads, int64_t part) {
  return {.data = static_cast<T*>(features.mutable_data_ptr()) + part * d,
          .member = features.stride(0),
          .sequence = features.stride(1),
          .head = d / heads,
          .token = features.stride(2)};
}

const float* DataOrNull(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

float* MutableDataOrNull(at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

template <typename T>
kernels::AttentionInputsOf<T> Inputs(const FusedCall& call) {
  const at::Tensor& qkv = call.qkv;
  const AttentionTerms& terms = call.terms;
  const int64_t d = qkv.size(3) / 3;
  kernels::AttentionInputsOf<T> inputs = {
      .shape = {.members = qkv.size(0),
                .sequences = qkv.size(1),
                .heads = call.heads,
                .queries = call.count,
                .keys = qkv.size(2),
                .head_size = d / call.heads},
      .queries = Part<T>(qkv, d, call.heads, 0),
      .keys = Part<T>(qkv, d, call.heads, 1),
      .values = Part<T>(qkv, d, call.heads, 2),
      .terms = {.additive = DataOrNull(terms.additive),
                .additive_shared = terms.additive.defined() && terms.additive.size(0) == 1,
                .relative = DataOrNull(terms.relative),
                .toeplitz = terms.toeplitz,
                .content_bias = DataOrNull(terms.content_bias),
                .position_bias = DataOrNull(terms.position_bias),
                .bias_stride = terms.content_bias.defined() ? terms.content_bias.stride(0) : 0,
                .rotation = DataOrNull(terms.rotation),
                .causal = terms.causal,
                .first_query = call.first}};
  inputs.queries.data += call.first * inputs.queries.token;
  return inputs;
}

template <typename T>
void Forward(const FusedCall& call, at::Tensor& output, float* log_sum_exp) {
  const kernels::AttentionInputsOf<T> inputs = Inputs<T>(call);
  const auto to = MutablePart<T>(output, output.size(3), call.heads, 0);
  if constexpr (std::is_same_v<T, float>) {
    if (call.qkv.is_cpu()) return kernels::AttentionForward(inputs, to, log_sum_exp, OnThreads);
  }
  OnStream(call.qkv.device(), [&](void* stream) {
    return kernels::AttentionForwardCuda(inputs, to, log_sum_exp, stream);
  });
}

template <typename T>
void Backward(const FusedCall& call, const at::Tensor& output, const at::Tensor& output_gradient,
              const float* log_sum_exp, FusedGradients& gradients) {
  const kernels::AttentionInputsOf<T> inputs = Inputs<T>(call);
  const int64_t d = output.size(3), heads = call.heads;
  const auto from = Part<T>(output, d, heads, 0);
  const auto from_gradient = Part<T>(output_gradient, d, heads, 0);
  const kernels::AttentionGradientsOf<T> to = {
      .queries = MutablePart<T>(gradients.qkv, d, heads, 0),
      .keys = MutablePart<T>(gradients.qkv, d, heads, 1),
      .values = MutablePart<T>(gradients.qkv, d, heads, 2),
      .additive = MutableDataOrNull(gradients.additive),
      .relative = MutableDataOrNull(gradients.relative),
      .content_bias = MutableDataOrNull(gradients.content_bias),
      .position_bias = MutableDataOrNull(gradients.position_bias)};
  if constexpr (std::is_same_v<T, float>) {
    if (call.qkv.is_cpu()) {
      return kernels::AttentionBackward(inputs, from, from_gradient, log_sum_exp, to, OnThreads);
    }
  }
  at::Tensor workspace = at::empty({kernels::AttentionWorkspaceCuda(inputs.shape, inputs.terms)},
                                   call.qkv.options().dtype(at::kFloat));
  OnStream(call.qkv.device(), [&](void* stream) {
    return kernels::AttentionBackwardCuda(inputs, from, from_gradient, log_sum_exp, to,
                                          workspace.mutable_data_ptr<float>(), stream);
  });
}

}  // namespace

void RunForward(const FusedCall& call, at::Tensor& output, at::Tensor& log_sum_exp) {
  float* sums = MutableDataOrNull(log_sum_exp);
  if (call.qkv.scalar_type() == at::kBFloat16) {
    return Forward<kernels::BFloat16>(call, output, sums);
  }
  Forward<float>(call, output, sums);
}

void RunBackward(const FusedCall& call, const at::Tensor& output, const at::Tensor& output_gradient,
                 const at::Tensor& log_sum_exp, FusedGradients& gradients) {
  const float* sums = log_sum_exp.const_data_ptr<float>();
  if (call.qkv.scalar_type() == at::kBFloat16) {
    return Backward<kernels::BFloat16>(call, output, output_gradient, sums, gradients);
  }
  Backward<float>(call, output, output_gradient, sums, gradients);
}

}  // namespace lengthwise::models
