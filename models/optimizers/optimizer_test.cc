#include "models/optimizers/optimizer.h"

#include <cmath>
#include <string>
#include <vector>

#include "ATen/ops/equal.h"
#include "ATen/ops/randn_like.h"
#include "ATen/ops/tensor.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/layers/kernel_calls.h"
#include "models/optimizers/catalogue.h"

namespace lengthwise::models {
namespace {

ParameterLayout OneParameter(int64_t size) {
  ParameterLayout layout;
  layout.Add("a", {size}, {.kind = Initializer::Kind::kNormal, .stddev = 1});
  return layout;
}

catalogue::Parameters Defaults(const std::string& name, const catalogue::Parameters& given = {}) {
  return catalogue::Resolved(OptimizerEntries(), name, given);
}

TEST(CreateOptimizerTest, CreatesEveryEntryOfTheCatalogue) {
  for (const catalogue::Entry* entry : OptimizerEntries()) {
    std::vector<catalogue::Problem> problems;
    EXPECT_TRUE(CreateOptimizer(entry->name, catalogue::Resolve(*entry, {}, "", problems)).ok());
  }
  EXPECT_EQ(CreateOptimizer("adm", {}).status().code(), absl::StatusCode::kNotFound);
}

// A step of members [first, first + count), with unscaled gradients.
void Step(const Optimizer& optimizer, ParameterArena& arena, int64_t first, int64_t count,
          int64_t step, const std::vector<double>& rates) {
  optimizer.Step(arena, first, count, at::tensor(optimizer.StepNumbers(step, rates)), {});
}

TEST(MeasureGradientsTest, FactorsScaleOnlyMembersAboveTheLimit) {
  const ParameterLayout layout = OneParameter(2);
  ParameterArena arena(layout, 3, at::kDouble, at::kCPU);
  arena.gradients()[0].narrow(0, 0, 2).copy_(at::tensor(std::vector<double>{3, 4}));
  arena.gradients()[1].narrow(0, 0, 2).copy_(at::tensor(std::vector<double>{0.3, 0.4}));
  const auto [norms, factors] = MeasureGradients(arena, 0, 3, 2.0);
  EXPECT_DOUBLE_EQ(norms[0].item<double>(), 5);
  EXPECT_DOUBLE_EQ(norms[1].item<double>(), 0.5);
  EXPECT_EQ(norms[2].item<double>(), 0);
  EXPECT_DOUBLE_EQ(factors[0].item<double>(), 0.4);
  EXPECT_EQ(factors[1].item<double>(), 1);
  EXPECT_EQ(factors[2].item<double>(), 1);
}

TEST(MeasureGradientsTest, ZeroNeverClipsAndNanPropagates) {
  const ParameterLayout layout = OneParameter(2);
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.gradients()[0][0].fill_(1e6);
  const Clipping unlimited = MeasureGradients(arena, 0, 1, 0);
  EXPECT_EQ(unlimited.norms.item<double>(), 1e6);
  EXPECT_FALSE(unlimited.factors.defined());
  arena.gradients()[0][1].fill_(std::nan(""));
  EXPECT_TRUE(std::isnan(MeasureGradients(arena, 0, 1, 1).factors.item<double>()));
}

TEST(AdamTest, MatchesAlgorithm1WithOwnLearningRates) {
  const ParameterLayout layout = OneParameter(3);
  ParameterArena arena(layout, 2, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  arena.Initialize(1, 2);
  const auto adam = CreateOptimizer("adam", Defaults("adam"));
  ASSERT_TRUE(adam.ok()) << adam.status();
  const std::vector<double> rates = {1e-3, 5e-2};
  double w[2][3], m[2][3] = {}, v[2][3] = {};
  for (int p = 0; p < 2; ++p) {
    for (int i = 0; i < 3; ++i) w[p][i] = arena.parameters()[p][i].item<double>();
  }
  for (int64_t step = 1; step <= 4; ++step) {
    for (int p = 0; p < 2; ++p) {
      for (int i = 0; i < 3; ++i) {
        const double g = std::sin(static_cast<double>(step) + 2.0 * p + 3.0 * i);
        arena.gradients()[p][i].fill_(g);
        m[p][i] = 0.9 * m[p][i] + 0.1 * g;
        v[p][i] = 0.999 * v[p][i] + 0.001 * g * g;
        const double mean = m[p][i] / (1 - std::pow(0.9, static_cast<double>(step)));
        const double square = v[p][i] / (1 - std::pow(0.999, static_cast<double>(step)));
        w[p][i] -= rates[static_cast<size_t>(p)] * mean / (std::sqrt(square) + 1e-8);
      }
    }
    Step(**adam, arena, 0, 2, step, rates);
  }
  for (int p = 0; p < 2; ++p) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(arena.parameters()[p][i].item<double>(), w[p][i], 1e-14);
    }
  }
  // Padding stays zero.
  EXPECT_EQ(arena.parameters().narrow(1, 3, 13).abs().max().item<double>(), 0);
}

// A GPU's kernel applies the factors itself.
TEST(OptimizerTest, FactorsMatchClippedGradients) {
  const ParameterLayout layout = OneParameter(5);
  for (const catalogue::Entry* entry : OptimizerEntries()) {
    const std::string& name = entry->name;
    const auto optimizer = CreateOptimizer(name, Defaults(name)).value();
    ParameterArena clipped(layout, 3, at::kFloat, at::kCPU), given(layout, 3, at::kFloat, at::kCPU);
    for (ParameterArena* arena : {&clipped, &given}) {
      for (int64_t p = 0; p < 3; ++p) arena->Initialize(p, 5 + static_cast<uint64_t>(p));
      arena->gradients().copy_(arena->parameters().mul(3));
    }
    const at::Tensor factors = MeasureGradients(given, 1, 2, 0.5).factors;
    clipped.gradients().narrow(0, 1, 2).mul_(factors.unsqueeze(1));
    Step(*optimizer, clipped, 1, 2, 1, {0.1, 0.2});
    optimizer->Step(given, 1, 2, at::tensor(optimizer->StepNumbers(1, {0.1, 0.2})), factors);
    EXPECT_TRUE(at::equal(clipped.parameters(), given.parameters())) << name;
    EXPECT_LT(factors.max().item<float>(), 1) << "clips nothing";
  }
}

// float32 has a kernel, float64 does not. Gradients span orders of magnitude, and the row is not a
// multiple of the kernel's chunks.
TEST(AdamTest, FusedStepMatchesSeparateOperations) {
  const ParameterLayout layout = OneParameter(20'001);
  const auto adam = CreateOptimizer("adam", Defaults("adam")).value();
  ParameterArena single(layout, 3, at::kFloat, at::kCPU), exact(layout, 3, at::kDouble, at::kCPU);
  for (int64_t p = 0; p < 3; ++p) single.Initialize(p, 7 + static_cast<uint64_t>(p));
  exact.parameters().copy_(single.parameters());
  for (int64_t step = 1; step <= 5; ++step) {
    single.gradients().copy_(single.parameters().mul(1e-3).pow(static_cast<double>(1 + step % 2)));
    exact.gradients().copy_(single.gradients());
    for (ParameterArena* arena : {&single, &exact}) {
      const at::Tensor factors = MeasureGradients(*arena, 0, 3, 0.01).factors;
      adam->Step(*arena, 0, 3, at::tensor(adam->StepNumbers(step, {1e-3, 3e-4, 0.1})), factors);
    }
  }
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sub(b).abs().max().item<double>() / b.abs().max().item<double>();
  };
  EXPECT_LT(difference(single.parameters(), exact.parameters()), 1e-5);
  EXPECT_LT(difference(single.first_moments(), exact.first_moments()), 1e-5);
  EXPECT_LT(difference(single.second_moments(), exact.second_moments()), 1e-5);
}

TEST(AdamTest, BitsDoNotDependOnThreadsOrPack) {
  const ParameterLayout layout = OneParameter(20'001);
  const auto adam = CreateOptimizer("adam", Defaults("adam")).value();
  const auto train = [&](int threads, int64_t pack) {
    SetThreads(threads);
    ParameterArena arena(layout, pack, at::kFloat, at::kCPU);
    for (int64_t p = 0; p < pack; ++p) arena.Initialize(p, 7);
    for (int64_t step = 1; step <= 3; ++step) {
      arena.gradients().copy_(arena.parameters().mul(0.5));
      Step(*adam, arena, 0, pack, step, std::vector<double>(static_cast<size_t>(pack), 0.01));
    }
    return arena.parameters()[pack - 1].clone();
  };
  const at::Tensor expected = train(1, 1);
  EXPECT_TRUE(at::equal(train(2, 1), expected));
  EXPECT_TRUE(at::equal(train(2, 3), expected));
}

TEST(AdamTest, LeavesOtherMembersAlone) {
  const ParameterLayout layout = OneParameter(3);
  ParameterArena arena(layout, 3, at::kFloat, at::kCPU);
  arena.gradients().copy_(at::randn_like(arena.gradients()));
  const at::Tensor before = arena.parameters().clone();
  const auto adam = CreateOptimizer("adam", Defaults("adam"));
  Step(**adam, arena, 1, 1, 1, {0.1});
  EXPECT_TRUE(at::equal(arena.parameters()[0], before[0]));
  EXPECT_TRUE(at::equal(arena.parameters()[2], before[2]));
  EXPECT_FALSE(at::equal(arena.parameters()[1], before[1]));
  EXPECT_EQ(arena.first_moments()[0].abs().max().item<float>(), 0);
}

// A matrix, a vector, a table of the encoding and an untrained one, all ones, with zero gradients.
ParameterLayout FourKinds() {
  const Initializer ones = {.kind = Initializer::Kind::kOnes};
  ParameterLayout layout;
  layout.Add("blocks.0.up", {2, 3}, ones);
  layout.Add("blocks.0.up_bias", {3}, ones);
  layout.Add("blocks.0.encoding.table", {4, 2}, ones);
  layout.Add("encoding.table", {4, 2}, ones, /*trained=*/false);
  return layout;
}

std::vector<double> FirstOfEachKind(const catalogue::Parameters& given) {
  const ParameterLayout layout = FourKinds();
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  const auto optimizer = CreateOptimizer("adamw", Defaults("adamw", given));
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  for (int64_t step = 1; step <= 2; ++step) {
    Step(**optimizer, arena, 0, 1, step, {0.5});
  }
  std::vector<double> firsts;
  for (const auto& slot : layout.slots()) {
    firsts.push_back(arena.parameters()[0][slot.offset].item<double>());
  }
  return firsts;
}

TEST(AdamWTest, DecayIsDecoupledFromTheGradient) {
  catalogue::Parameters given;
  given.Set("weight_decay", 0.1);
  // Twice 1 - 0.5 * 0.1.
  const std::vector<double> firsts = FirstOfEachKind(given);
  for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(firsts[i], 0.95 * 0.95);
  EXPECT_EQ(firsts[3], 1) << "is not trained";
}

TEST(AdamWTest, CanDecayOnlyMatrices) {
  catalogue::Parameters given;
  given.Set("decayed", std::string("matrices"));
  const std::vector<double> firsts = FirstOfEachKind(given);
  EXPECT_DOUBLE_EQ(firsts[0], 0.95 * 0.95);
  EXPECT_EQ(firsts[1], 1);
  EXPECT_EQ(firsts[2], 1);
}

TEST(AdamWTest, MatchesAdamWithoutDecay) {
  const ParameterLayout layout = OneParameter(5);
  catalogue::Parameters given;
  given.Set("weight_decay", 0.0);
  ParameterArena arenas[2] = {{layout, 1, at::kFloat, at::kCPU}, {layout, 1, at::kFloat, at::kCPU}};
  const auto adam = CreateOptimizer("adam", Defaults("adam")).value();
  const auto adamw = CreateOptimizer("adamw", Defaults("adamw", given)).value();
  for (ParameterArena& arena : arenas) {
    arena.Initialize(0, 3);
    arena.gradients().copy_(arena.parameters());
  }
  Step(*adam, arenas[0], 0, 1, 1, {0.1});
  Step(*adamw, arenas[1], 0, 1, 1, {0.1});
  EXPECT_TRUE(at::equal(arenas[0].parameters(), arenas[1].parameters()));
}

TEST(OptimizerTest, RaisesParametersToTheirMinimum) {
  ParameterLayout layout;
  const Initializer ones = {.kind = Initializer::Kind::kOnes};
  const ParameterId limited = layout.Add("limited", {3}, ones);
  layout.Add("free", {3}, ones);
  layout.SetMinimum(limited, 0.75);
  for (const catalogue::Entry* entry : OptimizerEntries()) {
    const std::string& name = entry->name;
    ParameterArena arena(layout, 2, at::kDouble, at::kCPU);
    for (int64_t p = 0; p < 2; ++p) arena.Initialize(p, 1);
    arena.gradients().fill_(1);
    const auto optimizer = CreateOptimizer(name, Defaults(name));
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    Step(**optimizer, arena, 1, 1, 1, {0.5});
    EXPECT_EQ(arena.parameters()[1][0].item<double>(), 0.75) << name;
    EXPECT_LT(arena.parameters()[1][layout.slots()[1].offset].item<double>(), 0.75) << name;
    EXPECT_EQ(arena.parameters()[0][0].item<double>(), 1) << name << ", another member";
  }
}

TEST(SgdTest, FollowsTheGradientWithMomentum) {
  const ParameterLayout layout = OneParameter(1);
  catalogue::Parameters given;
  given.Set("momentum", 0.5);
  for (const bool momentum : {false, true}) {
    ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
    const auto sgd =
        CreateOptimizer("sgd", Defaults("sgd", momentum ? given : catalogue::Parameters())).value();
    for (int64_t step = 1; step <= 3; ++step) {
      arena.gradients()[0][0].fill_(1);
      Step(*sgd, arena, 0, 1, step, {0.1});
    }
    // Directions 1, 1, 1, or with momentum 1, 1.5, 1.75.
    EXPECT_DOUBLE_EQ(arena.parameters()[0][0].item<double>(), momentum ? -0.425 : -0.3);
  }
}

}  // namespace
}  // namespace lengthwise::models
