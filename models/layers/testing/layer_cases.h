// Test cases of the layers with fused kernels: each layer as a function of its inputs, and the same
// function in LibTorch's operators.
#ifndef LENGTHWISE_MODELS_LAYERS_TESTING_LAYER_CASES_H_
#define LENGTHWISE_MODELS_LAYERS_TESTING_LAYER_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/relu.h"
#include "gtest/gtest.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layers.h"
#include "models/layers/norms.h"

namespace lengthwise::models {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

inline at::Tensor Numbers(at::IntArrayRef shape, double seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).mul(12.9898).add(seed).sin().to(at::kFloat).view(shape);
}

// 1,221 rows per member: several chunks and a partial one.
inline Tensors FeedForwardInputs(int64_t members, int64_t width) {
  return {Numbers({members, 111, 11, 6}, 1), Numbers({members, 6, width}, 2),
          Numbers({members, width}, 3), Numbers({members, width, 6}, 5), Numbers({members, 6}, 6)};
}

// Values are not centred at 0, because the sums in the weights' gradients would cancel.
inline Tensors LinearInputs(int64_t members, int64_t inputs, int64_t outputs) {
  return {Numbers({members, 111, 11, inputs}, 1).add(0.5), Numbers({members, inputs, outputs}, 2),
          Numbers({members, outputs}, 3)};
}

inline Tensors AddLayerNormInputs(int64_t members, int64_t width) {
  return {Numbers({members, 37, 11, width}, 1), Numbers({members, 37, 11, width}, 5).mul(3).add(1),
          Numbers({members, width}, 2), Numbers({members, width}, 3)};
}

inline Tensors RmsNormInputs(int64_t members, int64_t width) {
  return {Numbers({members, 37, 11, width}, 1).mul(3), Numbers({members, width}, 2)};
}

// Gates from -9 to 9 cover both tails and the range between.
inline Tensors GatedFeedForwardInputs(int64_t members, int64_t width) {
  return {Numbers({members, 37, 11, 6}, 1).mul(3), Numbers({members, 6, 2 * width}, 2),
          Numbers({members, width, 6}, 5)};
}

inline at::Tensor FusedRmsNorm(const Tensors& x) { return RmsNorm(x[0], x[1]); }
inline at::Tensor PlainRmsNorm(const Tensors& x) {
  return x[0]
      .div(x[0].square().mean(-1, /*keepdim=*/true).add(kRmsNormEpsilon).sqrt())
      .mul(x[1].unsqueeze(1).unsqueeze(1));
}
inline at::Tensor FusedGatedFeedForward(const Tensors& x) {
  return GatedFeedForward(x[0], {.inputs = x[1], .output = x[2]}, Gelu::kExact);
}
inline at::Tensor PlainGatedFeedForward(const Tensors& x) {
  const auto parts = Linear(x[0], x[1]).chunk(2, -1);
  return Linear(at::gelu(parts[0]).mul(parts[1]), x[2]);
}
inline at::Tensor WithBias(const Tensors& x) { return Linear(x[0], x[1], x[2]); }
inline at::Tensor WithoutBias(const Tensors& x) { return Linear(x[0], x[1]); }
inline at::Tensor FusedFeedForward(const Tensors& x) {
  return FeedForward(x[0], {.up = x[1], .up_bias = x[2], .down = x[3], .down_bias = x[4]});
}
inline at::Tensor PlainFeedForward(const Tensors& x) {
  return Linear(at::relu(Linear(x[0], x[1], x[2])), x[3], x[4]);
}
inline at::Tensor FusedAddLayerNorm(const Tensors& x) {
  return AddLayerNorm(x[0], x[1], x[2], x[3]).features;
}
inline at::Tensor PlainAddLayerNorm(const Tensors& x) {
  return LayerNorm(x[0].add(x[1]), x[2], x[3]);
}

// Logits for 5 classes; every member's loss is a result.
inline Tensors CrossEntropyInputs(int64_t members) {
  return {Numbers({members, 37, 11, 5}, 1).mul(10)};
}
inline at::Tensor Classes(const at::Tensor& logits) {
  return at::arange(logits.numel() / logits.size(3), logits.options().dtype(at::kLong))
      .mul(7)
      .remainder(logits.size(3))
      .view({logits.size(0), logits.size(1), logits.size(2)});
}
inline at::Tensor Mask(const at::Tensor& classes) { return classes.ne(1); }
inline at::Tensor FusedCrossEntropy(const Tensors& x) {
  const at::Tensor classes = Classes(x[0]);
  return CrossEntropy(x[0], classes, Mask(classes)).losses;
}
inline at::Tensor PlainCrossEntropy(const Tensors& x) {
  return at::log_softmax(x[0], -1).gather(-1, Classes(x[0]).unsqueeze(-1)).flatten(1).mean(1).neg();
}

// Returns the result and the gradients of all inputs, computed in `dtype` on `device`.
inline Tensors Differentiate(const Tensors& inputs, at::ScalarType dtype, const Function& function,
                             const at::Device& device = at::kCPU) {
  Tensors leaves;
  for (const at::Tensor& tensor : inputs) {
    leaves.push_back(
        tensor.to(device, dtype, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true));
  }
  const at::Tensor result = function(leaves);
  // Not centred at 0, because the sums in gradients of shared parameters would cancel to rounding
  // errors.
  result.mul(Numbers(result.sizes(), 4).add(0.5).to(device, dtype)).sum().backward();
  Tensors all = {result.detach().cpu()};
  for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad().cpu());
  return all;
}

// Expects errors of at most `tolerance`, relative to each tensor's largest magnitude.
inline void ExpectClose(const Tensors& fused, const Tensors& plain, const std::string& what,
                        double tolerance = 1e-5) {
  ASSERT_EQ(fused.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_LE(fused[i].to(at::kDouble).sub(plain[i]).abs().max().item<double>(),
              tolerance * plain[i].abs().max().item<double>())
        << what << ", tensor " << i;
  }
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_TESTING_LAYER_CASES_H_
