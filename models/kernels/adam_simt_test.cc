// Compares Adam on the CPU, and the kernel of adam_cuda.cu in simt_emulator.h, with algorithm 1 in
// double precision. models/optimizers/adam_cuda_test.cc runs the kernel on a GPU.
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "models/kernels/adam.h"
#include "models/kernels/adam_cuda-inl.h"
#include "models/kernels/parallel_for.h"
#include "models/kernels/testing/simt_emulator.h"

namespace lengthwise::kernels {
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

AdamRows RowsOf(Arena& arena, const std::vector<double>& rates, const double& correction,
                const float* factors) {
  const auto count = static_cast<int64_t>(rates.size());
  return {.parameters = arena.parameters.data(),
          .gradients = arena.gradients.data(),
          .first_moments = arena.first_moments.data(),
          .second_moments = arena.second_moments.data(),
          .rates = rates.data(),
          .second_correction = &correction,
          .factors = factors,
          .count = count,
          .row_size = static_cast<int64_t>(arena.parameters.size()) / count};
}

constexpr AdamConstants kConstants = {.beta1 = kBeta1,
                                      .beta2 = kBeta2,
                                      .rest1 = 1 - kBeta1,
                                      .rest2 = 1 - kBeta2,
                                      .epsilon = kEpsilon};

// Runs one step in the emulator. Null factors mean 1.
Arena Update(Arena arena, const std::vector<double>& rates, double correction, const float* factors,
             const simt::Emulator::Options& options = {}) {
  simt::Emulator device(options);
  LaunchAdam(device, RowsOf(arena, rates, correction, factors), kConstants);
  EXPECT_EQ(device.problem(), "");
  return arena;
}

Arena UpdateOnTheCpu(Arena arena, const std::vector<double>& rates, double correction,
                     const float* factors) {
  AdamStep(RowsOf(arena, rates, correction, factors), kConstants, Serially);
  return arena;
}

// Row sizes end within a GPU block, within a CPU vector, and just past a CPU chunk.
TEST(AdamSimtTest, CpuAndGpuMatchAlgorithm1) {
  const std::vector<double> rates = {1e-3, 5e-2};
  const double correction = 0.25;
  const std::vector<float> factors = {0.5F, 1};
  for (const size_t row_size : {3, 300, 8195}) {
    const Arena before = MakeArena(2 * row_size);
    for (const float* given : {factors.data(), static_cast<const float*>(nullptr)}) {
      for (const Arena& after : {Update(before, rates, correction, given),
                                 UpdateOnTheCpu(before, rates, correction, given)}) {
        for (size_t i = 0; i < before.parameters.size(); ++i) {
          const size_t member = i / row_size;
          const double g = (given == nullptr ? 1.0 : given[member]) * before.gradients[i];
          const double m = kBeta1 * before.first_moments[i] + (1 - kBeta1) * g;
          const double v = kBeta2 * before.second_moments[i] + (1 - kBeta2) * g * g;
          const double change = rates[member] * m / (std::sqrt(v / correction) + kEpsilon);
          ASSERT_NEAR(after.first_moments[i], m, 1e-7);
          ASSERT_NEAR(after.second_moments[i], v, 1e-7);
          ASSERT_NEAR(after.parameters[i], before.parameters[i] - change, 1e-6);
        }
      }
    }
  }
}

TEST(AdamSimtTest, ThreadAndBlockOrderDoesNotMatter) {
  const Arena before = MakeArena(size_t{3} * 700);
  const std::vector<double> rates = {1, 2, 3};
  const Arena expected = Update(before, rates, 0.5, nullptr);
  const Arena shuffled =
      Update(before, rates, 0.5, nullptr, {.order = simt::Emulator::Order::kShuffled, .seed = 1});
  EXPECT_EQ(shuffled.parameters, expected.parameters);
  EXPECT_EQ(shuffled.second_moments, expected.second_moments);
}

}  // namespace
}  // namespace lengthwise::kernels
