#include "random/permutation.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::random {
namespace {

std::vector<uint64_t> Order(uint64_t seed, uint64_t step, uint64_t bound) {
  const Permutation permutation(seed, Purpose::kExampleOrder, step, bound);
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < bound; ++i) order.push_back(permutation(i));
  return order;
}

TEST(PermutationTest, HasEveryNumberOnce) {
  for (const uint64_t bound : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 8000}) {
    std::vector<bool> seen(bound, false);
    for (const uint64_t value : Order(3, 1, bound)) {
      ASSERT_LT(value, bound);
      EXPECT_FALSE(seen[value]) << value << " twice of " << bound;
      seen[value] = true;
    }
  }
}

TEST(PermutationTest, DiffersForEverySeedAndStep) {
  const std::vector<uint64_t> order = Order(3, 1, 1000);
  EXPECT_EQ(Order(3, 1, 1000), order);
  for (const std::vector<uint64_t>& other : {Order(4, 1, 1000), Order(3, 2, 1000)}) {
    int same = 0;
    for (size_t i = 0; i < order.size(); ++i) same += order[i] == other[i];
    EXPECT_LE(same, 10) << "one is expected by chance";
  }
}

TEST(PermutationTest, PutsEveryNumberAtEveryPlaceEquallyOften) {
  // Chi-squared over place x number with (k - 1)^2 degrees of freedom: the 99.99th percentile of
  // 81 is 140.
  constexpr uint64_t kBound = 10;
  constexpr int kOrders = 20'000;
  int counts[kBound][kBound] = {};
  for (uint64_t step = 0; step < kOrders; ++step) {
    const Permutation permutation(9, Purpose::kExampleOrder, step, kBound);
    for (uint64_t i = 0; i < kBound; ++i) ++counts[i][permutation(i)];
  }
  const double expected = static_cast<double>(kOrders) / kBound;
  double chi_squared = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_squared, 140);
}

TEST(PermutationTest, NeighboursDoNotStayNeighbours) {
  // Among 8,000 places, one in 4,000 neighbouring pairs is expected to differ by one.
  const std::vector<uint64_t> order = Order(5, 7, 8000);
  int adjacent = 0;
  for (size_t i = 1; i < order.size(); ++i) {
    adjacent += order[i] == order[i - 1] + 1 || order[i] + 1 == order[i - 1];
  }
  EXPECT_LE(adjacent, 12);
}

TEST(PermutationTest, TakesBoundsOfThirtyTwoBits) {
  const Permutation permutation(1, Purpose::kExampleOrder, 1, uint64_t{1} << 32);
  EXPECT_NE(permutation(0), permutation((uint64_t{1} << 32) - 1));
}

}  // namespace
}  // namespace lengthwise::random
