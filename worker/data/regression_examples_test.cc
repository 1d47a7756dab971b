#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"
#include "worker/data/examples.h"
#include "worker/testing/tiny_trials.h"

namespace lengthwise::worker::data {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Examples> CreateNumbers(const std::string& task, int32_t shortest,
                                        int32_t longest) {
  v1::LengthRange lengths;
  lengths.set_min(shortest);
  lengths.set_max(longest);
  return CreateExamples(tasks::CreateTask(task, {}).value(), lengths);
}

TEST(RegressionExamplesTest, ScratchpadIsMaskedOut) {
  const auto examples = CreateNumbers("cumulative_sum", 3, 3);
  EXPECT_EQ(examples->targets(), Targets::kNumbers);
  EXPECT_EQ(examples->input_columns(), 0);
  EXPECT_EQ(examples->output_columns(), 1);
  EXPECT_EQ(examples->SequenceTokens(1), 4);
  Batch batch;
  examples->AppendTraining({.seed = 5, .rows = {0, 1}}, 3, batch);
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.tokens_per_row, 4);
  EXPECT_EQ(batch.outputs_per_row, 4);
  EXPECT_TRUE(batch.tokens.empty());
  EXPECT_THAT(batch.mask, ElementsAre(1, 1, 1, 0, 1, 1, 1, 0));
  ASSERT_EQ(batch.numbers.size(), 8U);
  for (const size_t first : {size_t{0}, size_t{4}}) {
    double sum = 0;
    for (size_t i = first; i < first + 3; ++i) {
      sum += batch.numbers[i];
      EXPECT_NEAR(batch.number_targets[i], sum, 1e-12);
    }
    EXPECT_EQ(batch.numbers[first + 3], 0);
  }
  EXPECT_NE(batch.numbers[0], batch.numbers[4]);
}

// The axis is the scale, at which evaluations have all lengths.
TEST(RegressionExamplesTest, TrainingExamplesHaveTheirOwnLength) {
  const auto examples = CreateNumbers("cumulative_sum", 1, 3);
  for (const int64_t n : {1, 2, 3}) {
    Batch batch;
    examples->AppendTraining({.rows = {0}}, n, batch);
    EXPECT_EQ(batch.tokens_per_row, n + 1);
    EXPECT_EQ(examples->TrainingSequenceTokens(n), n + 1);
    EXPECT_EQ(examples->TrainingInputTokens(n), n + 1);
    EXPECT_EQ(examples->SequenceTokens(n), 4);
  }
}

TEST(RegressionExamplesTest, DataSetRowsMayComeInAnyOrder) {
  const auto examples = CreateNumbers("sorting", 4, 4);
  const SampleAddresses third_and_first = {
      .seed = 1, .purpose = random::Purpose::kDataSet, .step = 4, .rows = {2, 0}};
  Batch forward, backward;
  examples->AppendTraining(
      {.seed = 1, .purpose = random::Purpose::kDataSet, .step = 4, .rows = {0, 1, 2}}, 4, forward);
  examples->AppendTraining(third_and_first, 4, backward);
  const std::vector<double> third(forward.numbers.begin() + 10, forward.numbers.end());
  EXPECT_EQ(std::vector<double>(backward.numbers.begin(), backward.numbers.begin() + 5), third);
}

// Every scale has new numbers; above 1 they leave the training range.
TEST(RegressionExamplesTest, AxisIsTheScaleOfTheNumbers) {
  const auto examples = CreateNumbers("cumulative_min", 8, 8);
  const auto largest = [&](int64_t scale) {
    Batch batch;
    examples->AppendEvaluation({.seed = 3, .n = scale, .asked = 200, .count = 200}, batch);
    double magnitude = 0;
    for (const double number : batch.numbers) magnitude = std::max(magnitude, std::abs(number));
    return magnitude;
  };
  EXPECT_LE(largest(1), 2);
  EXPECT_GT(largest(3), 4);
  EXPECT_LE(largest(3), 6);
  EXPECT_GT(largest(10), 15);
  EXPECT_LE(largest(10), 20);
}

TEST(RegressionExamplesTest, EvaluationsCoverLengthsLongestFirst) {
  const auto examples = CreateNumbers("cumulative_sum", 1, 3);
  std::vector<int64_t> tokens;
  for (int64_t first = 0; first < 8;) {
    const int64_t count = examples->RowsOfOneShape(/*n=*/2, /*asked=*/8, first);
    Batch batch;
    examples->AppendEvaluation({.seed = 1, .n = 2, .asked = 8, .first = first, .count = count},
                               batch);
    EXPECT_EQ(batch.rows, count);
    for (int64_t row = 0; row < count; ++row) tokens.push_back(batch.tokens_per_row);
    first += count;
  }
  EXPECT_THAT(tokens, ElementsAre(4, 4, 4, 3, 3, 3, 2, 2));
}

TEST(RegressionExamplesTest, SequencesInOrderDoNotDependOnHowManyAreAsked) {
  const auto examples = CreateNumbers("cumulative_sum", 1, 3);
  std::vector<int64_t> tokens;
  std::set<std::vector<double>> different;
  for (int64_t row = 0; row < 7; ++row) {
    Batch exactly, more;
    examples->AppendEvaluation(
        {.seed = 1, .n = 2, .asked = row + 1, .first = row, .count = 1, .in_order = true}, exactly);
    examples->AppendEvaluation(
        {.seed = 1, .n = 2, .asked = 50, .first = row, .count = 1, .in_order = true}, more);
    EXPECT_EQ(exactly.numbers, more.numbers);
    tokens.push_back(exactly.tokens_per_row);
    different.insert(exactly.numbers);
  }
  EXPECT_THAT(tokens, ElementsAre(4, 3, 2, 4, 3, 2, 4));
  EXPECT_EQ(different.size(), 7);
}

TEST(RegressionExamplesTest, PartsMatchTheWholeEvaluation) {
  const auto examples = CreateNumbers("cumulative_median", 5, 5);
  Batch whole, parts;
  examples->AppendEvaluation({.seed = 9, .n = 4, .asked = 6, .first = 0, .count = 6}, whole);
  examples->AppendEvaluation({.seed = 9, .n = 4, .asked = 6, .first = 0, .count = 2}, parts);
  examples->AppendEvaluation({.seed = 9, .n = 4, .asked = 6, .first = 2, .count = 4}, parts);
  EXPECT_EQ(whole.numbers, parts.numbers);
  EXPECT_EQ(whole.number_targets, parts.number_targets);
}

TEST(RegressionExamplesTest, WordsAreTokensAndNumbersAreNone) {
  const auto examples = CreateNumbers("relational_query", 8, 8);
  EXPECT_GT(examples->input_columns(), 0);
  Batch batch;
  examples->AppendTraining({.seed = 0, .rows = {0}}, 8, batch);
  ASSERT_EQ(batch.tokens.size(), batch.numbers.size());
  int numbers = 0;
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    numbers += batch.tokens[i] < 0;
    if (batch.tokens[i] >= 0) {
      EXPECT_EQ(batch.numbers[i], 0);
    }
    EXPECT_LT(batch.tokens[i], examples->input_columns());
  }
  EXPECT_GE(numbers, 8);
}

TEST(RegressionExamplesTest, WholeNumbersAreDrawnOnRequest) {
  const auto examples = CreateNumbers("cumulative_median", 5, 5);
  ASSERT_TRUE(examples->HasWholeNumbers(3));
  Batch batch;
  examples->AppendEvaluation({.seed = 3, .n = 3, .asked = 50, .count = 50, .whole_numbers = true},
                             batch);
  for (const double number : batch.numbers) EXPECT_EQ(number, std::round(number));
  for (const double target : batch.number_targets) EXPECT_EQ(2 * target, std::round(2 * target));
  EXPECT_THAT(batch.numbers, Contains(-6));
  v1::LengthRange lengths;
  lengths.set_max(5);
  catalogue::Parameters narrow;
  narrow.Set("bound", 0.3);
  const auto fractions = CreateExamples(tasks::CreateTask("sorting", narrow).value(), lengths);
  EXPECT_FALSE(fractions->HasWholeNumbers(3));
  EXPECT_TRUE(fractions->HasWholeNumbers(4));
}

// Appendix C.6: names 1 to 20 in training, 21 to 40 in tests of every scale.
TEST(RegressionExamplesTest, EvaluationsUseUnseenNames) {
  const auto examples = CreateNumbers("relational_query", 8, 8);
  // "Cat2 3.45 ...": tokens of names ascend with their numbers.
  const auto names = [](const Batch& batch) {
    std::set<int64_t> tokens;
    for (int64_t row = 0; row < batch.rows; ++row) {
      tokens.insert(batch.tokens.at(static_cast<size_t>(row * batch.tokens_per_row + 3)));
    }
    return tokens;
  };
  const auto evaluated = [&](int64_t scale, bool validation) {
    Batch batch;
    examples->AppendEvaluation(
        {.seed = 3, .n = scale, .asked = 300, .count = 300, .validation = validation}, batch);
    return names(batch);
  };
  Batch training;
  examples->AppendTraining({.seed = 5, .rows = RowsFrom(0, 300)}, 8, training);
  const int64_t largest = *names(training).rbegin();
  const int64_t unseen = *evaluated(1, /*validation=*/false).begin();
  EXPECT_LT(largest, unseen);
  EXPECT_LT(*evaluated(1, /*validation=*/true).rbegin(), unseen);
  EXPECT_EQ(*evaluated(3, /*validation=*/false).begin(), unseen);
  EXPECT_EQ(*evaluated(3, /*validation=*/true).begin(), unseen);
}

TEST(RegressionExamplesTest, GivenNumbersAreChecked) {
  const auto examples = CreateNumbers("sorting", 2, 2);
  const auto refusal = [&](const v1::TokenSequence& input) {
    return std::string(examples->Given(input).status().message());
  };
  EXPECT_THAT(examples->Given(NumbersOf({1.75, -0.25, 0}))->numbers, ElementsAre(1.75, -0.25, 0));
  EXPECT_THAT(examples->Given(TokensOf({4, -4, 0}))->numbers, ElementsAre(4, -4, 0));
  EXPECT_THAT(refusal(NumbersOf({1.75, -0.25})), HasSubstr("inputs have 3"));
  EXPECT_THAT(refusal(TokensOf({4, -4})), HasSubstr("inputs have 3"));
  EXPECT_THAT(refusal(NumbersOf({1, std::nan(""), 0})), HasSubstr("inputs are finite"));
  v1::TokenSequence both = NumbersOf({1.75, -0.25, 0});
  both.add_tokens(1);
  EXPECT_THAT(refusal(both), HasSubstr("tokens beside its numbers"));
  EXPECT_FALSE(CreateNumbers("relational_query", 8, 8)->Given({}).ok());
}

}  // namespace
}  // namespace lengthwise::worker::data
