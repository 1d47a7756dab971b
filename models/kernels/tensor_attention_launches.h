// Launches the kernels of tensor_attention_cuda.h. `Launcher` is that of simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_LAUNCHES_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_LAUNCHES_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "models/kernels/sum_parts-inl.h"
#include "models/kernels/tensor_attention-inl.h"
#include "models/kernels/tensor_attention_backward-inl.h"
#include "models/kernels/tensor_attention_forward-inl.h"

namespace lengthwise::kernels {

// Parts of the gradient of an additive term: [n, n] numbers for each head are too many for one
// part of every few sequences.
constexpr int64_t kAdditiveParts = 8;

// Sequences that a block takes one after another. More would need fewer partial sums and less
// staging of what they share, but leave fewer blocks: one to four took the same time on an H200,
// within a tenth.
constexpr int64_t kBlockSequences = 2;

inline int TensorChunks(const TensorShape& shape) {
  return static_cast<int>((shape.tokens + kChunk - 1) / kChunk);
}

// How a pass divides its sequences, and offsets into the backward pass's workspace in floats.
struct TensorPlan {
  int block_sequences = 1;
  int64_t groups = 1;
  int64_t projection = 0;
  int64_t content = 0;
  int64_t position = 0;
  int64_t additive = 0;
  int64_t size = 0;

  int64_t Blocks(const TensorShape& shape) const {
    return shape.members * groups * (kTensorHeads / kBlockHeads);
  }
};

inline TensorPlan MakeTensorPlan(const TensorAttentionInputs& inputs, bool additive_gradient) {
  const TensorShape& shape = inputs.shape;
  TensorPlan plan;
  int64_t of_block = kBlockSequences;
  if (additive_gradient) {
    of_block = std::max(of_block, (shape.sequences + kAdditiveParts - 1) / kAdditiveParts);
  }
  plan.block_sequences = static_cast<int>(std::min(of_block, shape.sequences));
  plan.groups = (shape.sequences + plan.block_sequences - 1) / plan.block_sequences;
  const auto take = [&](bool there, int64_t floats) {
    const int64_t place = plan.size;
    if (there) plan.size += shape.members * plan.groups * floats;
    return place;
  };
  const bool relative = inputs.sinusoids != nullptr;
  plan.projection = take(relative, kTensorModel * kTensorModel);
  plan.content = take(relative, kTensorModel);
  plan.position = take(relative, kTensorModel);
  // A part that is alone is the sum.
  plan.additive =
      take(additive_gradient && plan.groups > 1, kTensorHeads * shape.tokens * shape.tokens);
  return plan;
}

// Calls body(std::integral_constant) with the number of chunks of 16 tokens, 1 .. 8.
template <typename Body>
void WithChunks(int chunks, const Body& body) {
  [&]<int... kLess>(std::integer_sequence<int, kLess...>) {
    ((chunks == kLess + 1 ? body(std::integral_constant<int, kLess + 1>()) : void()), ...);
  }
  (std::make_integer_sequence<int, kMostTensorTokens / kChunk>());
}

template <typename Launcher>
void LaunchTensorForward(Launcher& launcher, const TensorAttentionInputs& inputs, BFloat16* output,
                         float* log_sum_exp) {
  const TensorPlan plan = MakeTensorPlan(inputs, /*additive_gradient=*/false);
  const bool relative = inputs.sinusoids != nullptr;
  const TensorCall call = {.inputs = inputs,
                           .block_sequences = plan.block_sequences,
                           .groups = static_cast<int>(plan.groups),
                           .log_sum_exp = log_sum_exp,
                           .output = output};
  WithChunks(TensorChunks(inputs.shape), [&](auto chunks) {
    constexpr int kChunks = decltype(chunks)::value;
    launcher.Launch(
        relative ? &TensorForwardKernel<kChunks, true> : &TensorForwardKernel<kChunks, false>,
        plan.Blocks(inputs.shape), kTensorThreads, TensorForwardBytes(kChunks, relative), call);
  });
}

template <typename Launcher>
void LaunchTensorBackward(Launcher& launcher, const TensorAttentionInputs& inputs,
                          const BFloat16* output, const BFloat16* output_gradient,
                          const float* log_sum_exp, const TensorAttentionGradients& gradients,
                          float* workspace) {
  const TensorShape& shape = inputs.shape;
  const bool additive = gradients.additive != nullptr;
  const TensorPlan plan = MakeTensorPlan(inputs, additive);
  const bool relative = inputs.sinusoids != nullptr;
  float* additive_parts = plan.groups == 1 ? gradients.additive : workspace + plan.additive;
  const TensorCall call = {.inputs = inputs,
                           .block_sequences = plan.block_sequences,
                           .groups = static_cast<int>(plan.groups),
                           // Only the forward pass writes them.
                           .log_sum_exp = const_cast<float*>(log_sum_exp),
                           .known_output = output,
                           .output_gradient = output_gradient,
                           .qkv_gradient = gradients.qkv,
                           .projection_parts = workspace + plan.projection,
                           .content_parts = workspace + plan.content,
                           .position_parts = workspace + plan.position,
                           .additive_parts = additive ? additive_parts : nullptr};
  launcher.Launch(relative ? &TensorBackwardKernel<true> : &TensorBackwardKernel<false>,
                  plan.Blocks(shape), kTensorThreads,
                  TensorBackwardBytes(TensorChunks(shape), relative), call);
  const auto add = [&](const float* parts, int64_t size, float* sums) {
    if (sums != nullptr) LaunchSum(launcher, parts, shape.members, plan.groups, size, sums);
  };
  if (relative) {
    add(call.projection_parts, kTensorModel * kTensorModel, gradients.projection);
    add(call.content_parts, kTensorModel, gradients.content_bias);
    add(call.position_parts, kTensorModel, gradients.position_bias);
  }
  if (plan.groups > 1) {
    add(call.additive_parts, kTensorHeads * shape.tokens * shape.tokens, gradients.additive);
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_LAUNCHES_H_
