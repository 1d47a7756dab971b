#include "models/encodings/shifted_rows.h"

#include <vector>

#include "ATen/ops/randn.h"
#include "ATen/ops/zeros_like.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

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
