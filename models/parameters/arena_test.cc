#include "models/parameters/arena.h"

#include <vector>

#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

ParameterLayout TwoParameters() {
  ParameterLayout layout;
  layout.Add("a", {2, 3}, {.kind = Initializer::Kind::kNormal, .stddev = 1});
  layout.Add("b", {4}, {.kind = Initializer::Kind::kOnes});
  return layout;
}

TEST(ParameterArenaTest, MembersAreViewsOfTheirRows) {
  const ParameterLayout layout = TwoParameters();
  ParameterArena arena(layout, 3, at::kDouble, at::kCPU);
  arena.Initialize(1, 5);
  const ParameterSet set = arena.Members(1, 2);
  EXPECT_EQ(set.members(), 2);
  EXPECT_EQ(set[0].sizes(), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(set[1].sizes(), (std::vector<int64_t>{2, 4}));
  EXPECT_TRUE(set[0].requires_grad());
  // Later writes to the arena show in the view.
  arena.parameters().select(0, 2).fill_(8);
  EXPECT_EQ(set[0].select(0, 1).min().item<double>(), 8);
  EXPECT_EQ(set[1].select(0, 0).max().item<double>(), 1);
}

TEST(ParameterArenaTest, InitializeFillsOneRowFromItsSeed) {
  const ParameterLayout layout = TwoParameters();
  ParameterArena arena(layout, 2, at::kFloat, at::kCPU);
  arena.Initialize(1, 5);
  std::vector<float> expected(static_cast<size_t>(layout.row_size()));
  InitializeRow(layout, 5, absl::MakeSpan(expected));
  for (int64_t i = 0; i < layout.row_size(); ++i) {
    EXPECT_EQ(arena.parameters()[1][i].item<float>(), expected[static_cast<size_t>(i)]);
    EXPECT_EQ(arena.parameters()[0][i].item<float>(), 0);
  }
}

TEST(ParameterArenaTest, BackwardAccumulatesInPlace) {
  const ParameterLayout layout = TwoParameters();
  ParameterArena arena(layout, 3, at::kDouble, at::kCPU);
  const ParameterSet set = arena.Members(1, 1);
  const void* gradient_place = arena.gradients().data_ptr();
  // d/da of 3a is 3, added twice.
  set[0].mul(3).sum().backward();
  set[0].mul(3).sum().backward();
  EXPECT_EQ(arena.gradients().data_ptr(), gradient_place);
  EXPECT_TRUE(at::equal(arena.gradients()[1].narrow(0, 0, 6),
                        at::full({6}, 6.0, arena.gradients().options())));
  // Other parameters, other members and the padding have no gradient.
  EXPECT_EQ(arena.gradients().sum().item<double>(), 36);
  arena.gradients().zero_();
  EXPECT_EQ(arena.gradients().abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace lengthwise::models
