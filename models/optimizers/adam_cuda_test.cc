// Compares Adam's CUDA kernel with plain operations in double on the CPU. Needs a GPU; otherwise it
// is skipped with a message.

#include <memory>
#include <vector>

#include "ATen/ops/tensor.h"
#include "gtest/gtest.h"
#include "models/layers/testing/cuda_for_tests.h"
#include "models/optimizers/catalogue.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {
namespace {

TEST(AdamCudaTest, MatchesPlainOperationsForAPack) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  ParameterLayout layout;
  // Sizes that no block divides.
  layout.Add("a", {1000, 7}, {.kind = Initializer::Kind::kNormal, .stddev = 1});
  layout.Add("b", {3}, {.kind = Initializer::Kind::kNormal, .stddev = 1});
  ParameterArena plain(layout, 3, at::kDouble, at::kCPU);
  ParameterArena fused(layout, 3, at::kFloat, at::Device(at::kCUDA, 0));
  for (int64_t member = 0; member < 3; ++member) {
    fused.Initialize(member, 10 + static_cast<uint64_t>(member));
  }
  plain.parameters().copy_(fused.parameters());
  std::vector<catalogue::Problem> problems;
  const std::unique_ptr<Optimizer> adam =
      *CreateOptimizer("adam", catalogue::Resolve(*OptimizerEntries()[0], {}, "", problems));
  for (int64_t step = 1; step <= 5; ++step) {
    // Gradients that span orders of magnitude, equal on both sides.
    fused.gradients().copy_(plain.parameters().mul(1e-3).pow(static_cast<double>(step)));
    plain.gradients().copy_(fused.gradients());
    // Only members 1 and 2, so that a wrong offset shows.
    const at::Tensor numbers = at::tensor(adam->StepNumbers(step, {3e-4, 1e-1}));
    adam->Step(plain, 1, 2, numbers, MeasureGradients(plain, 1, 2, 0.01).factors);
    adam->Step(fused, 1, 2, numbers.to(at::kCUDA), MeasureGradients(fused, 1, 2, 0.01).factors);
  }
  auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sub(b.cpu()).abs().max().item().toDouble() / a.abs().max().item().toDouble();
  };
  EXPECT_LT(difference(plain.parameters(), fused.parameters()), 1e-5);
  EXPECT_LT(difference(plain.first_moments(), fused.first_moments()), 1e-5);
  EXPECT_LT(difference(plain.second_moments(), fused.second_moments()), 1e-5);
}

}  // namespace
}  // namespace lengthwise::models
