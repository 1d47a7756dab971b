// Checks the distributions of the reference code, including its quirks, with Pearson's test at p =
// 0.001. Fixed seeds keep the tests deterministic.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/chomsky/testing/drawn_sample.h"

namespace lengthwise::tasks::chomsky {
namespace {

using Tokens = std::vector<int32_t>;
constexpr uint32_t kDraws = 20000;

std::map<Tokens, int64_t> CountInputs(const CatalogueTask& task, int64_t n) {
  std::map<Tokens, int64_t> counts;
  for (uint32_t row = 0; row < kDraws; ++row) ++counts[task.Draw(n, row).input];
  return counts;
}

std::vector<int64_t> Values(const std::map<Tokens, int64_t>& counts) {
  std::vector<int64_t> values;
  for (const auto& [input, count] : counts) values.push_back(count);
  return values;
}

class UniformStringsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(UniformStringsTest, AllStringsAreEquallyLikely) {
  const CatalogueTask task(GetParam());
  const std::map<Tokens, int64_t> counts = CountInputs(task, 3);
  const auto size = static_cast<size_t>(task->input_size());
  ASSERT_EQ(counts.size(), size * size * size);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

INSTANTIATE_TEST_SUITE_P(AllTasks, UniformStringsTest,
                         ::testing::Values("even_pairs", "parity_check", "cycle_navigation",
                                           "copy_string", "reverse_string", "duplicate_string",
                                           "odds_first", "bucket_sort"),
                         [](const auto& info) { return info.param; });

TEST(ModularArithmeticTest, DigitsAndOperatorsAreUniform) {
  const CatalogueTask task("modular_arithmetic");
  const std::map<Tokens, int64_t> counts = CountInputs(task, 4);  // gives length 3
  ASSERT_EQ(counts.size(), 5U * 3U * 5U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

TEST(ModularArithmeticBracketsTest, LeftExpressionLengthIsUniform) {
  // "(" left operator right ")" of length 8: left has 1 to 4 tokens. The first operator outside
  // inner brackets that does not follow an opening bracket marks its end.
  const CatalogueTask task("modular_arithmetic_brackets");
  std::vector<int64_t> lengths(4), operators(3);
  for (uint32_t row = 0; row < kDraws; ++row) {
    const Tokens input = task.Draw(8, row).input;
    int depth = 0;
    for (size_t i = 1; i < input.size(); ++i) {
      depth += (input[i] == 8) - (input[i] == 9);
      const bool is_operator = input[i] >= 5 && input[i] <= 7;
      if (depth > 0 || !is_operator || i == 1) continue;
      ++lengths.at(i - 2);
      ++operators.at(static_cast<size_t>(input[i] - 5));
      break;
    }
  }
  EXPECT_TRUE(FitsUniform(lengths));
  EXPECT_TRUE(FitsUniform(operators));
}

TEST(ModularArithmeticBracketsTest, ShortExpressionsHaveFourForms) {
  const CatalogueTask task("modular_arithmetic_brackets");
  for (const auto& [n, form] : std::vector<std::pair<int64_t, Tokens>>{
           {1, {-1}}, {2, {6, -1}}, {3, {8, -1, 9}}, {4, {8, 6, -1, 9}}}) {
    std::map<Tokens, int64_t> counts = CountInputs(task, n);
    ASSERT_EQ(counts.size(), 5U) << n;
    EXPECT_TRUE(FitsUniform(Values(counts))) << n;
    for (const auto& [input, count] : counts) {
      Tokens kinds = input;
      for (int32_t& token : kinds) token = token < 5 ? -1 : token;
      EXPECT_EQ(kinds, form);
    }
  }
}

TEST(SolveEquationTest, UnknownFollowsAUniformPlace) {
  // Length 8 leaves 6 places for the expression. In (d+-d), the places 3, 4 and the second digit's
  // own lead to the second digit; the others lead to the first.
  const CatalogueTask task("solve_equation");
  std::map<std::vector<bool>, std::vector<int64_t>> counts;
  for (uint32_t row = 0; row < kDraws; ++row) {
    const Tokens input = task.Draw(8, row).input;
    const bool unary_on_the_left = input[1] == 6;
    const size_t first = unary_on_the_left ? 2 : 1;
    std::vector<int64_t>& which = counts[{unary_on_the_left}];
    which.resize(2);
    ++which[input[first] == 9 ? 0 : 1];
  }
  // (d o -d): digits at 1 and 4; places 5, 0, 1 lead to the first and 2, 3, 4 to the second. (-d o
  // d): digits at 2 and 4; places 5, 0, 1, 2 lead to the first and 3, 4 to the second.
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_TRUE(Fits(counts[{false}], {3, 3}));
  EXPECT_TRUE(Fits(counts[{true}], {4, 2}));
}

TEST(SolveEquationTest, UnknownIsUniform) {
  const CatalogueTask task("solve_equation");
  std::vector<int64_t> targets(5);
  for (uint32_t row = 0; row < kDraws; ++row) {
    ++targets.at(static_cast<size_t>(task.Draw(20, row).target[0]));
  }
  EXPECT_TRUE(FitsUniform(targets));
}

TEST(StackManipulationTest, StackHeightAndActionsAreUniform) {
  const CatalogueTask task("stack_manipulation");
  std::vector<int64_t> heights(9), bits(2), actions(3);
  for (uint32_t row = 0; row < kDraws; ++row) {
    const Tokens input = task.Draw(10, row).input;
    const auto first_action =
        std::find_if(input.begin(), input.end(), [](int32_t token) { return token >= 2; });
    ++heights.at(static_cast<size_t>(first_action - input.begin() - 1));
    for (const int32_t token : input) {
      ++(token < 2 ? bits.at(static_cast<size_t>(token))
                   : actions.at(static_cast<size_t>(token - 2)));
    }
  }
  EXPECT_TRUE(FitsUniform(heights));
  EXPECT_TRUE(FitsUniform(bits));
  EXPECT_TRUE(FitsUniform(actions));
}

TEST(MissingDuplicateStringTest, StringAndMissingPlaceAreUniform) {
  const CatalogueTask task("missing_duplicate_string");
  // 4 strings of two bits, 4 places; the padding is last.
  const std::map<Tokens, int64_t> counts = CountInputs(task, 5);
  ASSERT_EQ(counts.size(), 16U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
  for (const auto& [input, count] : counts) EXPECT_EQ(input.back(), 3);
}

class BinaryOperandsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BinaryOperandsTest, SingleNumberIsNeverAllOnes) {
  const CatalogueTask task(GetParam());
  EXPECT_EQ(CountInputs(task, 1).size(), 1U);
  EXPECT_EQ(CountInputs(task, 1).begin()->first, Tokens{0});
  const std::map<Tokens, int64_t> counts = CountInputs(task, 2);
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts.count({1, 1}), 0U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

TEST_P(BinaryOperandsTest, OperatorPlaceAndNumbersAreUniform) {
  const CatalogueTask task(GetParam());
  // Length 5: operator at 1, 2 or 3; then 1 * 7, 3 * 3 and 7 * 1 pairs of positive numbers.
  std::vector<int64_t> counts;
  std::vector<double> probabilities;
  for (const auto& [input, count] : CountInputs(task, 5)) {
    const auto place = std::find(input.begin(), input.end(), 2) - input.begin();
    counts.push_back(count);
    probabilities.push_back(1.0 / 3 / (place == 2 ? 9 : 7));
  }
  ASSERT_EQ(counts.size(), 7U + 9U + 7U);
  EXPECT_TRUE(Fits(counts, probabilities));
}

INSTANTIATE_TEST_SUITE_P(AllTasks, BinaryOperandsTest,
                         ::testing::Values("binary_addition", "binary_multiplication"),
                         [](const auto& info) { return info.param; });

TEST(ComputeSqrtTest, NumberIsUniformAndPositive) {
  const std::map<Tokens, int64_t> counts = CountInputs(CatalogueTask("compute_sqrt"), 4);
  ASSERT_EQ(counts.size(), 15U);
  EXPECT_EQ(counts.count({0, 0, 0, 0}), 0U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

}  // namespace
}  // namespace lengthwise::tasks::chomsky
