#include "models/parameters/layout.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

constexpr Initializer kZeros = {.kind = Initializer::Kind::kZeros};
constexpr Initializer kOnes = {.kind = Initializer::Kind::kOnes};
constexpr Initializer kNormal = {.kind = Initializer::Kind::kNormal, .stddev = 0.5};
constexpr Initializer kTruncated = {.kind = Initializer::Kind::kTruncatedNormal, .stddev = 0.5};

std::vector<double> Initialized(const ParameterLayout& layout, uint64_t seed) {
  std::vector<double> row(static_cast<size_t>(layout.row_size()), -7);
  InitializeRow(layout, seed, absl::MakeSpan(row));
  return row;
}

TEST(ParameterLayoutTest, ParametersAndRowsStartAtMultiplesOf16) {
  ParameterLayout layout;
  EXPECT_EQ(layout.Add("a", {3, 5}, kZeros), 0);
  EXPECT_EQ(layout.Add("b", {16}, kZeros), 1);
  EXPECT_EQ(layout.Add("c", {1}, kZeros), 2);
  EXPECT_EQ(layout.slots()[0].offset, 0);
  EXPECT_EQ(layout.slots()[1].offset, 16);
  EXPECT_EQ(layout.slots()[2].offset, 32);
  EXPECT_EQ(layout.row_size(), 48);
  EXPECT_EQ(layout.parameter_count(), 15 + 16 + 1);
}

TEST(InitializeRowTest, WeightsDependOnlyOnSeedAndIndex) {
  ParameterLayout alone, with_another;
  alone.Add("a", {40}, kNormal);
  alone.Add("b", {40}, kNormal);
  with_another.Add("a", {7}, kTruncated);
  with_another.Add("renamed", {40}, kNormal);
  const std::vector<double> first = Initialized(alone, 3), second = Initialized(with_another, 3);
  // "b" and "renamed" are each the second parameter.
  EXPECT_TRUE(std::equal(first.begin() + 48, first.begin() + 88, second.begin() + 16));
  EXPECT_NE(Initialized(alone, 4), first);
  EXPECT_NE(first[0], first[48]);
}

TEST(InitializeRowTest, Float32IsRoundedFloat64) {
  ParameterLayout layout;
  layout.Add("a", {100}, kTruncated);
  const std::vector<double> exact = Initialized(layout, 1);
  std::vector<float> rounded(static_cast<size_t>(layout.row_size()));
  InitializeRow(layout, 1, absl::MakeSpan(rounded));
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(rounded[i], static_cast<float>(exact[i]));
}

TEST(InitializeRowTest, ConstantsAreConstant) {
  ParameterLayout layout;
  layout.Add("ones", {2}, kOnes);
  layout.Add("zeros", {2}, kZeros);
  const std::vector<double> row = Initialized(layout, 1);
  EXPECT_EQ(row[0], 1);
  EXPECT_EQ(row[1], 1);
  EXPECT_EQ(row[16], 0);
}

TEST(InitializeRowTest, TruncatedNormalHasItsVarianceAndBounds) {
  ParameterLayout layout;
  layout.Add("a", {200000}, kTruncated);
  const std::vector<double> row = Initialized(layout, 9);
  double squares = 0, largest = 0;
  for (const double value : row) {
    squares += value * value;
    largest = std::max(largest, std::abs(value));
  }
  EXPECT_LE(largest, 2 * 0.5);
  EXPECT_GT(largest, 1.99 * 0.5);
  // The standard deviation of N(0, 1) truncated to [-2, 2] is 0.87963.
  EXPECT_NEAR(std::sqrt(squares / 200000), 0.87963 * 0.5, 0.002);
}

}  // namespace
}  // namespace lengthwise::models
