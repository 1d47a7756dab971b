#include "models/layers/dropout.h"

#include <cmath>
#include <vector>

#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

constexpr double kRate = 0.1;

at::Tensor Dropped(const std::vector<uint64_t>& seeds, int64_t sequences, uint32_t site,
                   uint64_t step, int64_t first_sequence = 0) {
  return Dropout(at::ones({static_cast<int64_t>(seeds.size()), sequences, 50, 20}, at::kDouble),
                 kRate, site, {.seeds = seeds, .step = step, .first_sequence = first_sequence});
}

TEST(DropoutTest, DropsAtItsRateAndScalesTheRest) {
  const at::Tensor dropped = Dropped({3}, 40, 0, 1);
  const double numbers = 40 * 50 * 20;
  const double zeros = dropped.eq(0).sum().item<double>();
  EXPECT_NEAR(zeros / numbers, kRate, 5 * std::sqrt(kRate * (1 - kRate) / numbers));
  EXPECT_EQ(dropped.eq(1 / (1 - kRate)).sum().item<double>(), numbers - zeros);
}

TEST(DropoutTest, ItsMaskIsAFunctionOfItsPlace) {
  const at::Tensor mask = Dropped({3}, 8, 2, 5);
  EXPECT_TRUE(at::equal(mask, Dropped({3}, 8, 2, 5)));
  EXPECT_FALSE(at::equal(mask, Dropped({4}, 8, 2, 5)));
  EXPECT_FALSE(at::equal(mask, Dropped({3}, 8, 1, 5)));
  EXPECT_FALSE(at::equal(mask, Dropped({3}, 8, 2, 6)));
  EXPECT_FALSE(at::equal(mask[0][0], mask[0][1]));
}

TEST(DropoutTest, ChunksAndPacksDropWhatTheirPartsDrop) {
  const at::Tensor whole = Dropped({3}, 8, 2, 5);
  EXPECT_TRUE(at::equal(whole.narrow(1, 5, 3), Dropped({3}, 3, 2, 5, 5)));
  EXPECT_TRUE(at::equal(whole, Dropped({9, 3}, 8, 2, 5).narrow(0, 1, 1)));
}

}  // namespace
}  // namespace lengthwise::models
