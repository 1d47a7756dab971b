#include "models/encodings/relative_logits.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/randn.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/zeros_like.h"
#include "gtest/gtest.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

constexpr int64_t kMembers = 2, kSequences = 3, kLogitHeads = 2, kHeadSize = 4, kSinusoids = 16;

at::Tensor SeededNumbers(at::IntArrayRef shape, double seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).mul(12.9898).add(seed).sin().view(shape);
}

// Different for each member, as far as 2,048.
at::Tensor Ramp(int64_t n) {
  std::vector<at::Tensor> rows;
  for (int64_t p = 0; p < kMembers; ++p) {
    const at::Tensor places = at::arange(n, at::kDouble);
    rows.push_back(places.mul(2000.0 / static_cast<double>(n))
                       .add(places.mul(3.7 + static_cast<double>(p)).sin().mul(5).add(5))
                       .to(at::kLong));
  }
  return at::stack(rows);
}

struct Results {
  at::Tensor logits, of_biased, of_projection;
};

using Function = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

Results Differentiate(int64_t n, at::ScalarType dtype, const Function& function) {
  const at::Tensor biased = SeededNumbers({kMembers, kSequences, kLogitHeads, n, kHeadSize}, 1)
                                .to(dtype)
                                .requires_grad_(true);
  const at::Tensor projection = SeededNumbers({kMembers, kSinusoids, kLogitHeads * kHeadSize}, 2)
                                    .to(dtype)
                                    .requires_grad_(true);
  const at::Tensor logits = function(biased, Sinusoids(Ramp(n), kSinusoids, dtype), projection);
  logits.mul(SeededNumbers(logits.sizes(), 3).add(1.5).to(dtype)).sum().backward();
  return {logits.detach(), biased.grad(), projection.grad()};
}

double Error(const at::Tensor& actual, const at::Tensor& expected) {
  return actual.to(at::kDouble).sub(expected).abs().max().item<double>() /
         expected.abs().max().item<double>();
}

void ExpectCloseResults(const Results& actual, const Results& expected, double tolerance) {
  EXPECT_LE(Error(actual.logits, expected.logits), tolerance) << "logits";
  EXPECT_LE(Error(actual.of_biased, expected.of_biased), tolerance) << "gradient of queries";
  EXPECT_LE(Error(actual.of_projection, expected.of_projection), tolerance) << "gradient of W_R";
}

Function WithRows(int64_t rows) {
  return
      [rows](const at::Tensor& biased, const at::Tensor& sinusoids, const at::Tensor& projection) {
        return DifferenceLogits(biased, sinusoids, projection, rows);
      };
}

class DifferenceLogitsTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(DifferenceLogitsTest, MatchesTheFormula) {
  const int64_t n = GetParam();
  const at::Tensor positions = Ramp(n);
  const at::Tensor distances = positions.unsqueeze(1).sub(positions.unsqueeze(2));  // p_j - p_i
  const at::Tensor sinusoids = Sinusoids(distances, kSinusoids, at::kDouble);       // [P, n, n, d]
  const at::Tensor biased = SeededNumbers({kMembers, kSequences, kLogitHeads, n, kHeadSize}, 1);
  const at::Tensor projection = SeededNumbers({kMembers, kSinusoids, kLogitHeads * kHeadSize}, 2);
  // [P, n, n, H, dh]
  const at::Tensor relative = sinusoids.matmul(projection.unsqueeze(1))
                                  .view({kMembers, n, n, kLogitHeads, kHeadSize})
                                  .permute({0, 3, 1, 2, 4});  // [P, H, n, n, dh]
  const at::Tensor expected =
      biased.unsqueeze(4).mul(relative.unsqueeze(1)).sum(-1);  // [P, B, H, n, n]
  const at::Tensor plain = Sinusoids(positions, kSinusoids, at::kDouble);
  EXPECT_LE(Error(DifferenceLogits(biased, plain, projection, n), expected), 1e-11);
}

TEST_P(DifferenceLogitsTest, RowsAtOnceDoNotMatter) {
  const int64_t n = GetParam();
  ExpectCloseResults(Differentiate(n, at::kDouble, WithRows(3)),
                     Differentiate(n, at::kDouble, WithRows(n)), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Lengths, DifferenceLogitsTest, ::testing::Values(1, 2, 13, 80));

class ShiftedRowsTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(ShiftedRowsTest, MatchesPairwiseDistancesAndGradients) {
  const int64_t n = GetParam();
  at::Tensor rows = at::randn({3, n, 2 * n - 1}, at::kDouble).requires_grad_();
  const at::Tensor shifted = ShiftedRows(rows);
  ASSERT_EQ(shifted.sizes(), (std::vector<int64_t>{3, n, n}));
  // Weights with a transposed memory order, as gradients may have.
  const at::Tensor weights = at::randn({n, 3, n}, at::kDouble).transpose(0, 1);
  shifted.mul(weights).sum().backward();
  at::Tensor expected = at::zeros_like(rows.detach());
  for (int64_t g = 0; g < 3; ++g) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t distance = j - i + n - 1;
        EXPECT_EQ(shifted[g][i][j].item<double>(), rows[g][i][distance].item<double>());
        expected[g][i][distance].copy_(weights[g][i][j]);
      }
    }
  }
  EXPECT_TRUE(rows.grad().equal(expected));
}

INSTANTIATE_TEST_SUITE_P(Lengths, ShiftedRowsTest, ::testing::Values(1, 2, 3, 7));

}  // namespace
}  // namespace lengthwise::models
