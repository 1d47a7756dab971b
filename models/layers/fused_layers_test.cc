// The layers that have kernels of their own, against the plain operators in double.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full_like.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/relu.h"
#include "ATen/ops/sin.h"
#include "gtest/gtest.h"
#include "models/layers/add_layer_norm.h"
#include "models/layers/feed_forward.h"
#include "models/layers/gated_feed_forward.h"
#include "models/layers/layers.h"
#include "models/layers/rms_norm.h"

namespace lengthwise::models {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

at::Tensor Numbers(at::IntArrayRef shape, double seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).mul(12.9898).add(seed).sin().to(at::kFloat).view(shape);
}

// 1,221 rows a member: more than one chunk of rows, and a rest.
Tensors FeedForwardInputs(int64_t members, int64_t width) {
  return {Numbers({members, 111, 11, 6}, 1), Numbers({members, 6, width}, 2),
          Numbers({members, width}, 3), Numbers({members, width, 6}, 5), Numbers({members, 6}, 6)};
}

// Not around 0, or the weights' gradients would be sums that cancel.
Tensors LinearInputs(int64_t members, int64_t inputs, int64_t outputs) {
  return {Numbers({members, 111, 11, inputs}, 1).add(0.5), Numbers({members, inputs, outputs}, 2),
          Numbers({members, outputs}, 3)};
}

Tensors AddLayerNormInputs(int64_t members, int64_t width) {
  return {Numbers({members, 37, 11, width}, 1), Numbers({members, 37, 11, width}, 5).mul(3).add(1),
          Numbers({members, width}, 2), Numbers({members, width}, 3)};
}

Tensors RmsNormInputs(int64_t members, int64_t width) {
  return {Numbers({members, 37, 11, width}, 1).mul(3), Numbers({members, width}, 2)};
}

// Gates from -9 to 9: both tails and what is between.
Tensors GatedFeedForwardInputs(int64_t members, int64_t width) {
  return {Numbers({members, 37, 11, 6}, 1).mul(3), Numbers({members, 6, 2 * width}, 2),
          Numbers({members, width, 6}, 5)};
}

at::Tensor FusedRmsNorm(const Tensors& x) { return RmsNorm(x[0], x[1]); }
at::Tensor PlainRmsNorm(const Tensors& x) {
  return x[0]
      .div(x[0].square().mean(-1, /*keepdim=*/true).add(kRmsNormEpsilon).sqrt())
      .mul(x[1].unsqueeze(1).unsqueeze(1));
}
at::Tensor FusedGatedFeedForward(const Tensors& x) {
  return GatedFeedForward(x[0], {.inputs = x[1], .output = x[2]}, Gelu::kExact);
}
at::Tensor PlainGatedFeedForward(const Tensors& x) {
  const auto parts = Linear(x[0], x[1]).chunk(2, -1);
  return Linear(at::gelu(parts[0]).mul(parts[1]), x[2]);
}
at::Tensor WithBias(const Tensors& x) { return Linear(x[0], x[1], x[2]); }
at::Tensor WithoutBias(const Tensors& x) { return Linear(x[0], x[1]); }
at::Tensor FusedFeedForward(const Tensors& x) {
  return FeedForward(x[0], {.up = x[1], .up_bias = x[2], .down = x[3], .down_bias = x[4]});
}
at::Tensor PlainFeedForward(const Tensors& x) {
  return Linear(at::relu(Linear(x[0], x[1], x[2])), x[3], x[4]);
}
at::Tensor FusedAddLayerNorm(const Tensors& x) { return AddLayerNorm(x[0], x[1], x[2], x[3]); }
at::Tensor PlainAddLayerNorm(const Tensors& x) { return LayerNorm(x[0].add(x[1]), x[2], x[3]); }

// The result and the gradients of all inputs, computed in `dtype`.
Tensors Differentiate(const Tensors& inputs, at::ScalarType dtype, const Function& function) {
  Tensors leaves;
  for (const at::Tensor& tensor : inputs) {
    leaves.push_back(tensor.to(dtype, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true));
  }
  const at::Tensor result = function(leaves);
  // Not around 0, or the gradients of shared parameters would be sums that cancel to rounding
  // errors.
  result.mul(Numbers(result.sizes(), 4).add(0.5).to(dtype)).sum().backward();
  Tensors all = {result.detach()};
  for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad());
  return all;
}

void ExpectClose(const Tensors& fused, const Tensors& plain, const std::string& what) {
  ASSERT_EQ(fused.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_LE(fused[i].to(at::kDouble).sub(plain[i]).abs().max().item<double>(),
              1e-5 * plain[i].abs().max().item<double>())
        << what << ", tensor " << i;
  }
}

void ExpectSameBits(const Tensors& inputs, const Function& function) {
  at::set_num_threads(1);
  const Tensors one = Differentiate(inputs, at::kFloat, function);
  at::set_num_threads(2);
  const Tensors two = Differentiate(inputs, at::kFloat, function);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], two[i])) << "tensor " << i;
}

void ExpectPackIsItsMembers(const Tensors& pack, const Function& function) {
  const at::Tensor together = function(pack);
  for (int64_t p = 0; p < together.size(0); ++p) {
    Tensors member;
    for (const at::Tensor& tensor : pack) member.push_back(tensor.narrow(0, p, 1));
    EXPECT_TRUE(at::equal(function(member), together.narrow(0, p, 1))) << "member " << p;
  }
}

TEST(LinearTest, AgreesWithPlainOperatorsInDouble) {
  for (const int64_t members : {1, 3}) {
    for (const int64_t inputs : {1, 6, 64, 131}) {
      for (const int64_t outputs : {1, 7, 64, 192}) {
        Tensors given = LinearInputs(members, inputs, outputs);
        const std::string what = std::to_string(members) + " members, " + std::to_string(inputs) +
                                 " to " + std::to_string(outputs);
        ExpectClose(Differentiate(given, at::kFloat, WithBias),
                    Differentiate(given, at::kDouble, WithBias), what);
        given.pop_back();
        ExpectClose(Differentiate(given, at::kFloat, WithoutBias),
                    Differentiate(given, at::kDouble, WithoutBias), what + ", no bias");
      }
    }
  }
}

TEST(LinearTest, TwoThreadsGiveTheBitsOfOne) { ExpectSameBits(LinearInputs(1, 64, 192), WithBias); }

TEST(LinearTest, APackGivesTheBitsOfItsMembers) {
  ExpectPackIsItsMembers(LinearInputs(3, 64, 192), WithBias);
}

TEST(LinearTest, ARowHasTheSameBitsWhicheverRowsAreWithIt) {
  const Tensors all = LinearInputs(1, 64, 192);
  const at::Tensor expected = WithBias(all);
  Tensors some = all;
  some[0] = all[0].narrow(1, 7, 5);
  EXPECT_TRUE(at::equal(WithBias(some), expected.narrow(1, 7, 5)));
}

TEST(FeedForwardTest, AgreesWithPlainOperatorsInDouble) {
  for (const int64_t members : {1, 3}) {
    for (const int64_t width : {1, 7, 16, 37}) {
      const Tensors inputs = FeedForwardInputs(members, width);
      ExpectClose(Differentiate(inputs, at::kFloat, FusedFeedForward),
                  Differentiate(inputs, at::kDouble, PlainFeedForward),
                  std::to_string(members) + " members, width " + std::to_string(width));
    }
  }
}

// In hidden units it must not become their 0.
TEST(FeedForwardTest, WhatIsNotANumberStaysSo) {
  Tensors inputs = FeedForwardInputs(1, 16);
  inputs[2] = at::full_like(inputs[2], std::nan(""));  // up_bias
  const Tensors results = Differentiate(inputs, at::kFloat, FusedFeedForward);
  EXPECT_TRUE(results[0].isnan().all().item<bool>());
  EXPECT_TRUE(results[4].isnan().all().item<bool>()) << "gradient of down";
}

TEST(FeedForwardTest, TwoThreadsGiveTheBitsOfOne) {
  ExpectSameBits(FeedForwardInputs(1, 16), FusedFeedForward);
}

TEST(AddLayerNormTest, AgreesWithPlainOperatorsInDouble) {
  for (const int64_t members : {1, 3}) {
    for (const int64_t width : {3, 7, 16, 64, 101}) {
      const Tensors inputs = AddLayerNormInputs(members, width);
      ExpectClose(Differentiate(inputs, at::kFloat, FusedAddLayerNorm),
                  Differentiate(inputs, at::kDouble, PlainAddLayerNorm),
                  std::to_string(members) + " members, width " + std::to_string(width));
    }
  }
}

TEST(RmsNormTest, AgreesWithPlainOperatorsInDouble) {
  for (const int64_t members : {1, 3}) {
    for (const int64_t width : {3, 7, 16, 64, 101}) {
      const Tensors inputs = RmsNormInputs(members, width);
      ExpectClose(Differentiate(inputs, at::kFloat, FusedRmsNorm),
                  Differentiate(inputs, at::kDouble, PlainRmsNorm),
                  std::to_string(members) + " members, width " + std::to_string(width));
    }
  }
}

TEST(RmsNormTest, TwoThreadsGiveTheBitsOfOne) {
  ExpectSameBits(RmsNormInputs(1, 20), FusedRmsNorm);
}

TEST(RmsNormTest, APackGivesTheBitsOfItsMembers) {
  ExpectPackIsItsMembers(RmsNormInputs(3, 20), FusedRmsNorm);
}

TEST(GatedFeedForwardTest, AgreesWithPlainOperatorsInDouble) {
  for (const int64_t members : {1, 3}) {
    for (const int64_t width : {1, 7, 16, 37}) {
      const Tensors inputs = GatedFeedForwardInputs(members, width);
      ExpectClose(Differentiate(inputs, at::kFloat, FusedGatedFeedForward),
                  Differentiate(inputs, at::kDouble, PlainGatedFeedForward),
                  std::to_string(members) + " members, width " + std::to_string(width));
    }
  }
}

TEST(GatedFeedForwardTest, TwoThreadsGiveTheBitsOfOne) {
  ExpectSameBits(GatedFeedForwardInputs(1, 16), FusedGatedFeedForward);
}

TEST(AddLayerNormTest, TwoThreadsGiveTheBitsOfOne) {
  ExpectSameBits(AddLayerNormInputs(1, 20), FusedAddLayerNorm);
}

TEST(FeedForwardTest, APackGivesTheBitsOfItsMembers) {
  ExpectPackIsItsMembers(FeedForwardInputs(3, 16), FusedFeedForward);
}

TEST(AddLayerNormTest, APackGivesTheBitsOfItsMembers) {
  ExpectPackIsItsMembers(AddLayerNormInputs(3, 20), FusedAddLayerNorm);
}

}  // namespace
}  // namespace lengthwise::models
