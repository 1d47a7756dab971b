// Compares the layers with fused CPU kernels with plain operators in double precision.
#include <cmath>
#include <string>

#include "ATen/ops/cat.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full_like.h"
#include "ATen/ops/zeros_like.h"
#include "gtest/gtest.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/recompute.h"
#include "models/layers/testing/layer_cases.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {
namespace {

void ExpectSameBits(const Tensors& inputs, const Function& function) {
  SetThreads(1);
  const Tensors one = Differentiate(inputs, at::kFloat, function);
  SetThreads(2);
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

TEST(LinearTest, Bfloat16IsFloat32RoundedOnce) {
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); };
  const auto in_bfloat16 = [](const Tensors& x) {
    const Bfloat16Products products;
    return WithBias(x);
  };
  const auto in_float32 = [&](Tensors x) {
    for (at::Tensor& tensor : x) tensor = rounded(tensor);
    return rounded(WithBias(x));
  };
  for (const int64_t members : {1, 3}) {
    const Tensors inputs = LinearInputs(members, 64, 192);
    const Tensors actual = Differentiate(inputs, at::kFloat, in_bfloat16),
                  expected = Differentiate(inputs, at::kFloat, in_float32);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(actual[i], expected[i])) << members << " members, tensor " << i;
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

// ReLU must not turn NaN in hidden units into 0.
TEST(FeedForwardTest, NanStaysNan) {
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

TEST(CrossEntropyTest, AgreesWithPlainOperatorsInDouble) {
  for (const int64_t members : {1, 3}) {
    const Tensors inputs = CrossEntropyInputs(members);
    ExpectClose(Differentiate(inputs, at::kFloat, FusedCrossEntropy),
                Differentiate(inputs, at::kDouble, PlainCrossEntropy),
                std::to_string(members) + " members");
  }
}

// float32 has fused kernels, float64 does not.
TEST(CrossEntropyTest, CountsTheSameAnswersAsRightInEveryType) {
  at::Tensor logits = CrossEntropyInputs(3)[0];
  logits[1].zero_();  // the first of equal logits is the prediction
  const at::Tensor classes = Classes(logits), mask = Mask(classes);
  const at::Tensor expected = logits.argmax(-1)
                                  .eq(classes)
                                  .logical_and(mask)
                                  .flatten(1)
                                  .sum(1)
                                  .to(at::kDouble)
                                  .div(mask.flatten(1).sum(1));
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    EXPECT_TRUE(at::equal(CrossEntropy(logits.to(type), classes, mask).accuracies, expected));
  }
  const at::Tensor none = at::zeros_like(mask);
  EXPECT_EQ(CrossEntropy(logits, classes, none).accuracies.abs().max().item<double>(), 0);
}

TEST(CrossEntropyTest, TwoThreadsGiveTheBitsOfOne) {
  ExpectSameBits(CrossEntropyInputs(1), FusedCrossEntropy);
}

TEST(CrossEntropyTest, APackGivesTheBitsOfItsMembers) {
  Tensors pack = CrossEntropyInputs(3);
  // All members have the same classes.
  const auto losses = [](const Tensors& x) {
    const at::Tensor classes = Classes(x[0].narrow(0, 0, 1)).expand({x[0].size(0), -1, -1});
    return CrossEntropy(x[0], classes, Mask(classes)).losses;
  };
  ExpectPackIsItsMembers(pack, losses);
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

// Expects equal bits, which the fused kernels do not produce.
TEST(KernelChoiceTest, PlainIsLibTorchsOperators) {
  const auto expect = [](const Tensors& inputs, const Function& fused, const Function& plain) {
    const Tensors expected = Differentiate(inputs, at::kFloat, plain);
    bool different = false;
    const Tensors by_default = Differentiate(inputs, at::kFloat, fused);
    const KernelScope scope(KernelChoice::Plain());
    const Tensors chosen = Differentiate(inputs, at::kFloat, fused);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(chosen[i], expected[i])) << "tensor " << i;
      different = different || !at::equal(by_default[i], expected[i]);
    }
    EXPECT_TRUE(different);
  };
  // Too few rows for the linear kernels, which would give the same bits as the fused layer.
  Tensors few_rows = FeedForwardInputs(3, 16);
  few_rows[0] = few_rows[0].narrow(1, 0, 1);
  expect(few_rows, FusedFeedForward, PlainFeedForward);
  expect(AddLayerNormInputs(3, 20), FusedAddLayerNorm, PlainAddLayerNorm);
  expect(CrossEntropyInputs(3), FusedCrossEntropy, PlainCrossEntropy);
}

// A backward pass may run on another thread, outside every scope.
TEST(KernelChoiceTest, RecomputationKeepsTheChoiceOfTheForwardPass) {
  ParameterLayout layout;
  layout.Add("a", {1}, {});
  const ParameterArena arena(layout, 1, at::kFloat, at::kCPU);
  std::vector<KernelChoice> choices;
  const at::Tensor features = Numbers({1, 2, 3, 4}, 1).requires_grad_(true);
  at::Tensor output;
  {
    const KernelScope scope(KernelChoice::Plain());
    output =
        Recomputed(arena.Members(0, 1), features, [&](const ParameterSet&, const at::Tensor& x) {
          choices.push_back(CurrentKernels());
          return x.mul(2);
        });
  }
  output.sum().backward();
  EXPECT_EQ(choices, std::vector<KernelChoice>(2, KernelChoice::Plain()));
}

// A pack's parameters are views of an arena, in which a member's other parameters lie between them.
TEST(ArenaViewsTest, ReachTheKernelsWithoutACopy) {
  ParameterLayout layout;
  const ParameterId before = layout.Add("before", {5}, {.kind = Initializer::Kind::kZeros});
  const ParameterId scale = layout.Add("scale", {16}, {.kind = Initializer::Kind::kZeros});
  const ParameterId offset = layout.Add("offset", {16}, {.kind = Initializer::Kind::kZeros});
  const ParameterArena arena(layout, 3, at::kFloat, at::kCPU);
  const ParameterSet pack = arena.Members(0, 3);
  for (const ParameterId id : {before, scale, offset}) {
    EXPECT_FALSE(pack[id].is_contiguous());
    EXPECT_EQ(ByMember(pack[id]).const_data_ptr(), pack[id].const_data_ptr());
    EXPECT_TRUE(arena.Members(1, 1)[id].is_contiguous()) << "a CPU trains members one by one";
  }
  const at::Tensor transposed = pack[scale].view({3, 4, 4}).transpose(1, 2);
  EXPECT_TRUE(ByMember(transposed).is_contiguous());
}

TEST(ArenaViewsTest, GiveTheBitsOfContiguousTensors) {
  Tensors apart = AddLayerNormInputs(3, 24), together = apart;
  for (const size_t i : {2, 3}) {
    apart[i] = at::cat({apart[i], at::full_like(apart[i], 7)}, 1).narrow(1, 0, apart[i].size(1));
    together[i] = apart[i].contiguous();
    EXPECT_FALSE(apart[i].is_contiguous());
  }
  const auto differentiate = [](Tensors leaves) {
    for (at::Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
    const at::Tensor y = FusedAddLayerNorm(leaves);
    y.mul(y).mul(y).sum().backward();
    Tensors all = {y.detach()};
    for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad());
    return all;
  };
  const Tensors ones = differentiate(apart), others = differentiate(together);
  ASSERT_EQ(ones.size(), 5u) << "the output and the gradients";
  for (size_t i = 0; i < ones.size(); ++i) EXPECT_TRUE(at::equal(ones[i], others[i])) << i;
}

}  // namespace
}  // namespace lengthwise::models
