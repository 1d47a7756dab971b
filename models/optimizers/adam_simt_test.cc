// The kernel of adam_cuda.cu, as it is, in an emulation of a GPU, against algorithm 1 in double
// precision. adam_cuda_test.cc runs it on a GPU.
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "models/kernels/simt_emulator.h"
#include "models/optimizers/adam_cuda-inl.h"

namespace lengthwise::models {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

struct Arena {
  // [count, row_size] each.
  std::vector<float> parameters, gradients, first_moments, second_moments;
};

Arena MakeArena(size_t numbers) {
  Arena arena;
  for (size_t i = 0; i < numbers; ++i) {
    const double x = 12.9898 * static_cast<double>(i);
    arena.parameters.push_back(static_cast<float>(std::sin(x)));
    arena.gradients.push_back(static_cast<float>(std::sin(x + 1)));
    arena.first_moments.push_back(static_cast<float>(0.1 * std::sin(x + 2)));
    arena.second_moments.push_back(static_cast<float>(0.1 + 0.05 * std::sin(x + 3)));
  }
  return arena;
}

// One step with the given factors (none: null).
Arena Update(Arena arena, int64_t count, const std::vector<double>& rates, double correction,
             const float* factors, const kernels::simt::Emulator::Options& options = {}) {
  kernels::simt::Emulator device(options);
  LaunchAdam(device,
             {.parameters = arena.parameters.data(),
              .gradients = arena.gradients.data(),
              .first_moments = arena.first_moments.data(),
              .second_moments = arena.second_moments.data(),
              .rates = rates.data(),
              .second_correction = &correction,
              .factors = factors,
              .count = count,
              .row_size = static_cast<int64_t>(arena.parameters.size()) / count},
             {.beta1 = kBeta1,
              .beta2 = kBeta2,
              .rest1 = 1 - kBeta1,
              .rest2 = 1 - kBeta2,
              .epsilon = kEpsilon});
  EXPECT_EQ(device.problem(), "");
  return arena;
}

// Rows that end within a block.
TEST(AdamSimtTest, IsAlgorithm1OfClippedGradientsWithEachMembersRate) {
  constexpr size_t kRowSize = 300;
  const std::vector<double> rates = {1e-3, 5e-2};
  const double correction = 0.25;
  const std::vector<float> factors = {0.5F, 1};
  const Arena before = MakeArena(2 * kRowSize);
  for (const float* given : {factors.data(), static_cast<const float*>(nullptr)}) {
    const Arena after = Update(before, 2, rates, correction, given);
    for (size_t i = 0; i < before.parameters.size(); ++i) {
      const size_t member = i / kRowSize;
      const double g = (given == nullptr ? 1.0 : given[member]) * before.gradients[i];
      const double m = kBeta1 * before.first_moments[i] + (1 - kBeta1) * g;
      const double v = kBeta2 * before.second_moments[i] + (1 - kBeta2) * g * g;
      ASSERT_NEAR(after.first_moments[i], m, 1e-7);
      ASSERT_NEAR(after.second_moments[i], v, 1e-7);
      ASSERT_NEAR(after.parameters[i],
                  before.parameters[i] - rates[member] * m / (std::sqrt(v / correction) + kEpsilon),
                  1e-6);
    }
  }
}

TEST(AdamSimtTest, TheOrderOfThreadsAndBlocksDoesNotMatter) {
  const Arena before = MakeArena(size_t{3} * 700);
  const std::vector<double> rates = {1, 2, 3};
  const Arena expected = Update(before, 3, rates, 0.5, nullptr);
  const Arena shuffled = Update(before, 3, rates, 0.5, nullptr,
                                {.order = kernels::simt::Emulator::Order::kShuffled, .seed = 1});
  EXPECT_EQ(shuffled.parameters, expected.parameters);
  EXPECT_EQ(shuffled.second_moments, expected.second_moments);
}

}  // namespace
}  // namespace lengthwise::models
