// Implements fused attention of attention.h.
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "c10/core/GradMode.h"
#include "models/attention/attention.h"
#include "models/encodings/sinusoids.h"
#include "models/kernels/attention.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/tensor_attention_cuda.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/layers.h"
#include "torch/csrc/autograd/custom_function.h"
#include "torch/custom_class.h"

namespace lengthwise::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Attention of queries first .. first + count - 1 of `qkv` [P, B, n, 3 d] to all its keys and
// values. All tensors are contiguous; terms are float32.
struct FusedCall {
  const at::Tensor& qkv;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t count = 0;
  const AttentionTerms& terms;
};

// Part 0, 1 or 2 of [P, B, n, 3 d], or part 0 of [P, B, n, d], which begins at `data`.
template <typename T>
kernels::HeadVectors<T> Part(T* data, const at::Tensor& features, int64_t d, int64_t heads,
                             int64_t part) {
  return {.data = data + part * d,
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

kernels::AttentionInputs Inputs(const FusedCall& call) {
  const at::Tensor& qkv = call.qkv;
  const AttentionTerms& terms = call.terms;
  const int64_t d = qkv.size(3) / 3;
  const auto* data = qkv.const_data_ptr<float>();
  kernels::AttentionInputs inputs = {
      .shape = {.members = qkv.size(0),
                .sequences = qkv.size(1),
                .heads = call.heads,
                .queries = call.count,
                .keys = qkv.size(2),
                .head_size = d / call.heads},
      .queries = Part(data, qkv, d, call.heads, 0),
      .keys = Part(data, qkv, d, call.heads, 1),
      .values = Part(data, qkv, d, call.heads, 2),
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

// Writes `output` [P, B, count, d] and, unless undefined, `log_sum_exp` [P, B, H, count].
void RunForward(const FusedCall& call, at::Tensor& output, at::Tensor& log_sum_exp) {
  kernels::AttentionForward(
      Inputs(call), Part(output.mutable_data_ptr<float>(), output, output.size(3), call.heads, 0),
      MutableDataOrNull(log_sum_exp), OnThreads);
}

// Converts a term to the kernels' type and layout. Contiguous float32 terms stay as they are.
at::Tensor ForKernels(const at::Tensor& term) {
  return term.defined() ? term.to(at::kFloat).contiguous() : term;
}

// ForKernels of u and w, which are not copied if each member's numbers are contiguous and its own
// (ParameterSet::Copies).
std::pair<at::Tensor, at::Tensor> BiasesForKernels(const AttentionTerms& terms) {
  if (!terms.content_bias.defined() || !terms.position_bias.defined()) {
    return {ForKernels(terms.content_bias), ForKernels(terms.position_bias)};
  }
  const at::Tensor u = ByMember(terms.content_bias.to(at::kFloat)),
                   w = ByMember(terms.position_bias.to(at::kFloat));
  if (u.stride(0) == w.stride(0) && u.stride(0) != 0) return {u, w};
  return {u.contiguous(), w.contiguous()};
}

AttentionTerms ForKernels(const AttentionTerms& terms) {
  const auto [content_bias, position_bias] = BiasesForKernels(terms);
  return {.additive = ForKernels(terms.additive),
          .relative = ForKernels(terms.relative),
          .toeplitz = terms.toeplitz,
          .remake_relative = terms.remake_relative,
          .content_bias = content_bias,
          .position_bias = position_bias,
          .rotation = ForKernels(terms.rotation),
          .causal = terms.causal};
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

// A function saved for the backward pass.
struct Remake : torch::CustomClassHolder {
  explicit Remake(std::function<at::Tensor()> given) : make(std::move(given)) {}
  const std::function<at::Tensor()> make;
};

// Tensors have the kernels' types and layouts. Those of `terms` that may need a gradient are
// arguments, too, in which LibTorch looks for them.
class Fused : public torch::autograd::Function<Fused> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const MaybeTensor& /*additive*/, const MaybeTensor& /*relative*/,
                            const MaybeTensor& /*content_bias*/,
                            const MaybeTensor& /*position_bias*/, int64_t heads,
                            const AttentionTerms& terms) {
    const int64_t members = qkv.size(0), sequences = qkv.size(1), n = qkv.size(2);
    const int64_t d = qkv.size(3) / 3;
    at::Tensor output = at::empty({members, sequences, n, d}, qkv.options());
    at::Tensor log_sum_exp = at::empty({members, sequences, heads, n}, qkv.options());
    RunForward({.qkv = qkv, .heads = heads, .count = n, .terms = terms}, output, log_sum_exp);
    context->save_for_backward(
        {qkv, terms.additive, terms.remake_relative ? at::Tensor() : terms.relative,
         terms.content_bias, terms.position_bias, terms.rotation, output, log_sum_exp});
    if (terms.remake_relative) {
      context->saved_data["remake"] =
          c10::IValue::make_capsule(c10::make_intrusive<Remake>(terms.remake_relative));
    }
    // Saved, because a recomputed R does not say whether its gradient is wanted.
    context->saved_data["relative_wanted"] =
        terms.relative.defined() && terms.relative.requires_grad();
    context->saved_data["heads"] = heads;
    context->saved_data["toeplitz"] = terms.toeplitz;
    context->saved_data["causal"] = terms.causal;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const AttentionTerms terms = {.additive = saved[1],
                                  .relative = Relative(context, saved[2]),
                                  .toeplitz = context->saved_data["toeplitz"].toBool(),
                                  .content_bias = saved[3],
                                  .position_bias = saved[4],
                                  .rotation = saved[5],
                                  .causal = context->saved_data["causal"].toBool()};
    const at::Tensor& output = saved[6];
    const at::Tensor& log_sum_exp = saved[7];
    const int64_t heads = context->saved_data["heads"].toInt();
    const int64_t members = qkv.size(0), n = qkv.size(2), d = output.size(3);

    const at::Tensor output_gradient = output_gradients[0].contiguous();
    // The kernel writes a gradient for each member even if they share the additive term, and skips
    // undefined tensors of terms.
    at::Tensor of_qkv = at::empty_like(qkv),
               of_additive = GradientOf(terms.additive, {members, heads, n, n});
    at::Tensor of_relative, of_content, of_position;
    if (terms.relative.defined()) {
      if (context->saved_data["relative_wanted"].toBool()) {
        of_relative = at::empty(terms.relative.sizes(), terms.relative.options());
      }
      of_content = GradientOf(terms.content_bias, terms.content_bias.sizes());
      of_position = GradientOf(terms.position_bias, terms.position_bias.sizes());
    }
    auto* parts = of_qkv.mutable_data_ptr<float>();
    kernels::AttentionBackward(
        Inputs({.qkv = qkv, .heads = heads, .count = n, .terms = terms}),
        Part(output.const_data_ptr<float>(), output, d, heads, 0),
        Part(output_gradient.const_data_ptr<float>(), output_gradient, d, heads, 0),
        log_sum_exp.const_data_ptr<float>(),
        {.queries = Part(parts, of_qkv, d, heads, 0),
         .keys = Part(parts, of_qkv, d, heads, 1),
         .values = Part(parts, of_qkv, d, heads, 2),
         .additive = MutableDataOrNull(of_additive),
         .relative = MutableDataOrNull(of_relative),
         .content_bias = MutableDataOrNull(of_content),
         .position_bias = MutableDataOrNull(of_position)},
        OnThreads);
    if (of_additive.defined() && terms.additive.size(0) == 1 && members > 1) {
      of_additive = of_additive.sum(0, /*keepdim=*/true);
    }
    return {of_qkv, of_additive, of_relative, of_content, of_position, {}, {}};
  }

 private:
  static at::Tensor Relative(AutogradContext* context, const at::Tensor& kept) {
    const auto remake = context->saved_data.find("remake");
    if (remake == context->saved_data.end()) return kept;
    const c10::NoGradGuard no_gradients;
    return ForKernels(
        c10::static_intrusive_pointer_cast<Remake>(remake->second.toCapsule())->make());
  }
};

// All tensors but `qkv` are as ForKernels makes them; sinusoids and projection are float32.
class OnTensorCores : public torch::autograd::Function<OnTensorCores> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const MaybeTensor& additive, const MaybeTensor& rotation,
                            const MaybeTensor& sinusoids, const MaybeTensor& projection,
                            const MaybeTensor& content_bias, const MaybeTensor& position_bias) {
    const auto rounded = [](const MaybeTensor& tensor) {
      return tensor.has_value() ? Rounded(*tensor) : at::Tensor();
    };
    const variable_list inputs = {Rounded(qkv),
                                  additive.value_or(at::Tensor()),
                                  rotation.value_or(at::Tensor()),
                                  rounded(sinusoids),
                                  rounded(projection),
                                  content_bias.value_or(at::Tensor()),
                                  position_bias.value_or(at::Tensor())};
    const int64_t members = qkv.size(0), sequences = qkv.size(1), n = qkv.size(2);
    at::Tensor output = at::empty({members, sequences, n, kernels::kTensorModel}, qkv.options());
    at::Tensor log_sum_exp =
        at::empty({members, sequences, kernels::kTensorHeads, n}, qkv.options().dtype(at::kFloat));
    OnStream(qkv.device(), [&](auto* stream) {
      return kernels::TensorAttentionForwardCuda(InputsOf(inputs), MutableBFloat16Of(output),
                                                 log_sum_exp.mutable_data_ptr<float>(), stream);
    });
    variable_list saved = inputs;
    saved.push_back(output);
    saved.push_back(log_sum_exp);
    context->save_for_backward(saved);
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &qkv = saved[0], &additive = saved[1], &projection = saved[4],
                     &output = saved[7], &log_sum_exp = saved[8];
    const kernels::TensorAttentionInputs inputs = InputsOf(saved);
    const int64_t members = qkv.size(0), n = qkv.size(2);
    const at::TensorOptions sums = qkv.options().dtype(at::kFloat);
    const at::Tensor output_gradient = Rounded(output_gradients[0]);
    at::Tensor of_qkv = at::empty_like(qkv), of_additive, of_projection, of_content, of_position;
    if (additive.defined() && context->needs_input_grad(1)) {
      of_additive = at::empty({members, kernels::kTensorHeads, n, n}, sums);
    }
    if (projection.defined()) {
      of_projection = at::empty(projection.sizes(), sums);
      of_content = at::empty(saved[5].sizes(), sums);
      of_position = at::empty(saved[6].sizes(), sums);
    }
    OnStream(qkv.device(), [&](auto* stream) {
      at::Tensor workspace =
          at::empty({kernels::TensorAttentionWorkspace(inputs, of_additive.defined())}, sums);
      return kernels::TensorAttentionBackwardCuda(inputs, BFloat16Of(output),
                                                  BFloat16Of(output_gradient),
                                                  log_sum_exp.const_data_ptr<float>(),
                                                  {.qkv = MutableBFloat16Of(of_qkv),
                                                   .additive = MutableDataOrNull(of_additive),
                                                   .projection = MutableDataOrNull(of_projection),
                                                   .content_bias = MutableDataOrNull(of_content),
                                                   .position_bias = MutableDataOrNull(of_position)},
                                                  workspace.mutable_data_ptr<float>(), stream);
    });
    if (of_additive.defined() && inputs.additive_shared && members > 1) {
      of_additive = of_additive.sum(0, /*keepdim=*/true);
    }
    return {of_qkv,        of_additive, at::Tensor(), at::Tensor(),
            of_projection, of_content,  of_position};
  }

 private:
  static kernels::TensorAttentionInputs InputsOf(const variable_list& given) {
    const at::Tensor &qkv = given[0], &additive = given[1], &content_bias = given[5];
    kernels::TensorAttentionInputs inputs = {
        .shape = {.members = qkv.size(0), .sequences = qkv.size(1), .tokens = qkv.size(2)},
        .qkv = BFloat16Of(qkv),
        .additive = DataOrNull(additive),
        .additive_shared = additive.defined() && additive.size(0) == 1,
        .rotation = DataOrNull(given[2])};
    if (given[3].defined()) {
      inputs.sinusoids = BFloat16Of(given[3]);
      inputs.projection = BFloat16Of(given[4]);
      inputs.content_bias = DataOrNull(content_bias);
      inputs.position_bias = DataOrNull(given[6]);
      inputs.bias_stride = content_bias.stride(0);
    }
    return inputs;
  }
};

// The kernels are for float32, in which products of bfloat16 are exact.
at::Tensor QkvForKernels(const at::Tensor& qkv) { return Widened(qkv).contiguous(); }

// Returns `qkv` with queries and keys rotated by `rotation` [P, n, dh].
at::Tensor Turned(const at::Tensor& qkv, int64_t heads, const at::Tensor& rotation) {
  std::vector<at::Tensor> parts = qkv.split(qkv.size(3) / 3, 3);
  for (size_t i = 0; i < 2; ++i) {
    parts[i] = TurnPairs(SplitHeads(parts[i], heads), rotation).transpose(2, 3).flatten(3, 4);
  }
  return at::cat(parts, 3);
}

}  // namespace

bool CanFuse(const at::Tensor& tensor) {
  return tensor.is_cpu() && HasKernelType(tensor.scalar_type()) &&
         HasKernel(FusedOperation::kAttention, tensor);
}

bool CanUseTensorCores(const at::Tensor& qkv, int64_t heads) {
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && heads == kernels::kTensorHeads &&
         qkv.size(3) == 3 * kernels::kTensorModel && qkv.size(2) <= kernels::kMostTensorTokens &&
         HasKernel(FusedOperation::kAttention, qkv);
}

bool HaveTensorKernels(const AttentionTerms& terms) {
  return !terms.relative.defined() && !terms.causal &&
         !(terms.rotation.defined() && terms.rotation.requires_grad());
}

at::Tensor TensorAttention(const at::Tensor& qkv, const AttentionTerms& given_terms) {
  const AttentionTerms terms = ForKernels(given_terms);
  return OnTensorCores::apply(qkv, Maybe(terms.additive), Maybe(terms.rotation),
                              Maybe(given_terms.sinusoids), Maybe(given_terms.projection),
                              Maybe(terms.content_bias), Maybe(terms.position_bias));
}

at::Tensor FusedAttention(const at::Tensor& qkv, int64_t heads, const AttentionTerms& given_terms) {
  if (given_terms.rotation.defined() && given_terms.rotation.requires_grad()) {
    // The kernels compute no gradient for angles, so LibTorch's operators rotate first.
    AttentionTerms others = given_terms;
    others.rotation = at::Tensor();
    return FusedAttention(Turned(QkvForKernels(qkv), heads, given_terms.rotation), heads, others);
  }
  const AttentionTerms terms = ForKernels(given_terms);
  return Fused::apply(QkvForKernels(qkv), Maybe(terms.additive), Maybe(terms.relative),
                      Maybe(terms.content_bias), Maybe(terms.position_bias), heads, terms);
}

at::Tensor FusedAttentionRows(const at::Tensor& given_qkv, int64_t heads, int64_t first,
                              int64_t count, const AttentionTerms& given_terms) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor qkv = QkvForKernels(given_qkv);
  const AttentionTerms terms = ForKernels(given_terms);
  const int64_t d = qkv.size(3) / 3;
  at::Tensor output = at::empty({qkv.size(0), qkv.size(1), count, d}, qkv.options());
  at::Tensor no_sums;
  RunForward({.qkv = qkv, .heads = heads, .first = first, .count = count, .terms = terms}, output,
             no_sums);
  return output;
}

}  // namespace lengthwise::models
