#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/chomsky/testing/drawn_sample.h"

namespace lengthwise::tasks::memory {
namespace {

using chomsky::CatalogueTask;
using chomsky::DrawnSample;
using chomsky::Fits;
using chomsky::FitsUniform;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Tokens = std::vector<int32_t>;
using Given = std::map<std::string, catalogue::ParameterValue>;

constexpr uint32_t kDraws = 20000;
constexpr int32_t kWrite = 0, kRead = 1, kIgnore = 2;

catalogue::Parameters Parameters(const Given& given) {
  catalogue::Parameters parameters;
  for (const auto& [name, value] : given) parameters.Set(name, value);
  return parameters;
}

std::map<Tokens, int64_t> CountInputs(const std::string& name, const Given& given, int64_t n) {
  const CatalogueTask task(name, Parameters(given));
  std::map<Tokens, int64_t> counts;
  for (uint32_t row = 0; row < kDraws; ++row) ++counts[task.Draw(n, row).input];
  return counts;
}

std::vector<int64_t> Values(const std::map<Tokens, int64_t>& counts) {
  std::vector<int64_t> values;
  for (const auto& [input, count] : counts) values.push_back(count);
  return values;
}

Tokens Solved(const std::string& name, const Given& given, const Tokens& input) {
  const CatalogueTask task(name, Parameters(given));
  const auto length = static_cast<int64_t>(input.size());
  EXPECT_EQ(task->InputLength(length), length);
  return task.Solve(input, static_cast<size_t>(task->OutputLength(length)));
}

class EveryMemoryTaskTest : public ::testing::TestWithParam<std::pair<std::string, Given>> {
 protected:
  const CatalogueTask task_{GetParam().first, Parameters(GetParam().second)};
};

TEST_P(EveryMemoryTaskTest, SamplesAreSolvedAtEveryLengthTo500) {
  for (int64_t n = 1; n <= 500; ++n) {
    const int64_t length = task_->InputLength(n);
    EXPECT_LE(std::abs(length - n), n < 10 ? 9 : 1);
    EXPECT_EQ(task_->InputLength(length), length);
    EXPECT_EQ(task_->OutputLength(length), task_->OutputLength(n));
    const DrawnSample sample = task_.Draw(n, 0);
    for (const int32_t token : sample.input) {
      ASSERT_TRUE(token >= 0 && token < task_->input_size()) << n << ": " << token;
    }
    ASSERT_EQ(task_.Solve(sample.input, sample.target.size()), sample.target) << n;
    const std::vector<uint8_t> mask = task_.Mask(sample.target);
    EXPECT_GT(std::count(mask.begin(), mask.end(), 1), 0) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllTasks, EveryMemoryTaskTest,
    ::testing::ValuesIn(std::vector<std::pair<std::string, Given>>{
        {"associative_recall", {}},
        {"associative_recall", {{"updates", int64_t{2}}, {"pairs", int64_t{50}}}},
        {"associative_recall", {{"compositional", true}, {"pairs", int64_t{20}}}},
        {"associative_recall", {{"compositional", true}, {"updates", int64_t{3}}}},
        {"associative_recall", {{"vocabulary", int64_t{6}}, {"pairs", int64_t{1024}}}},
        {"counting", {}},
        {"counting", {{"items", int64_t{1}}, {"modulus", int64_t{1000}}}},
        {"digit_sum", {}},
        {"flip_flop", {}},
        {"selective_copy", {}},
        {"word_problem", {}},
        {"word_problem", {{"group", std::string("A4_x_Z5")}}}}),
    [](const auto& info) { return info.param.first + std::to_string(info.index); });

TEST(ChanceTest, IsOneOfTheAnswersThatOccur) {
  for (const char* name :
       {"associative_recall", "counting", "flip_flop", "selective_copy", "word_problem"}) {
    const CatalogueTask task(name);
    std::set<int32_t> answers;
    for (uint32_t row = 0; row < 2000; ++row) {
      const Tokens target = task.Draw(101, row).target;
      const std::vector<uint8_t> mask = task.Mask(target);
      for (size_t i = 0; i < target.size(); ++i) {
        if (mask[i] == 1) answers.insert(target[i]);
      }
    }
    EXPECT_NEAR(FindTask(name)->random_accuracy, 1.0 / static_cast<double>(answers.size()), 1e-12)
        << name;
  }
}

TEST(RecallTest, EveryQuestionIsAnsweredWithItsValue) {
  const Given given = {{"vocabulary", int64_t{20}}};
  EXPECT_EQ(Solved("associative_recall", given, {3, 14, 7, 11, 0, 0, 3, 0, 7, 0}),
            (Tokens{0, 0, 0, 0, 0, 0, 14, 0, 11, 0}));
  EXPECT_EQ(Solved("associative_recall", {{"vocabulary", int64_t{20}}, {"updates", int64_t{1}}},
                   {3, 14, 7, 11, 3, 19, 7, 0, 3, 0}),
            (Tokens{0, 0, 0, 0, 0, 0, 11, 0, 19, 0}));
  // 1 and 2 with 7 and 8: neither token alone determines a value.
  EXPECT_EQ(Solved("associative_recall", {{"vocabulary", int64_t{18}}, {"compositional", true}},
                   {1, 7, 12, 2, 8, 13, 1, 8, 14, 2, 7, 15, 2, 7, 0, 1, 7, 0, 1, 8, 0, 2, 8, 0}),
            (Tokens{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 12, 0, 0, 14, 0, 0, 13, 0}));
}

TEST(RecallTest, KeysValuesAndSlotsFollowTheDefinition) {
  // Keys 1 and 2 in either order, two of the values 3 to 5, and the first key in the first slot
  // with a weight of 1 against 2^(a - 1).
  for (const double power : {0.01, 1.0}) {
    const std::map<Tokens, int64_t> counts =
        CountInputs("associative_recall",
                    {{"vocabulary", int64_t{6}}, {"pairs", int64_t{2}}, {"power", power}}, 8);
    ASSERT_EQ(counts.size(), 2U * 6U * 2U);
    std::vector<double> probabilities;
    for (const auto& [input, count] : counts) {
      probabilities.push_back(input[4] == input[0] ? 1 : std::pow(2, power - 1));
    }
    EXPECT_TRUE(Fits(Values(counts), probabilities)) << power;
  }
}

TEST(RecallTest, UpdatesAvoidTheValueThatTheReferenceAvoids) {
  // With one pair it is the pair's own.
  const Given one = {{"vocabulary", int64_t{6}}, {"pairs", int64_t{1}}, {"updates", int64_t{1}}};
  const std::map<Tokens, int64_t> counts = CountInputs("associative_recall", one, 6);
  ASSERT_EQ(counts.size(), 2U * 3U * 2U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
  for (const auto& [input, count] : counts) EXPECT_NE(input[1], input[3]);
  // With two pairs, the update avoids the first pair's value even if it updates the second.
  const Given two = {{"vocabulary", int64_t{6}}, {"pairs", int64_t{2}}, {"updates", int64_t{1}}};
  std::vector<int64_t> updates(3);
  for (const auto& [input, count] : CountInputs("associative_recall", two, 10)) {
    EXPECT_NE(input[5], input[1]);
    updates[input[4] == input[0] ? 0 : input[5] == input[3] ? 1 : 2] += count;
  }
  EXPECT_TRUE(Fits(updates, {2, 1, 1}));
}

TEST(RecallTest, CompositionalKeysFormAGrid) {
  const Given one = {{"vocabulary", int64_t{9}}, {"pairs", int64_t{1}}, {"compositional", true}};
  const std::map<Tokens, int64_t> counts = CountInputs("associative_recall", one, 6);
  ASSERT_EQ(counts.size(), 2U * 3U * 3U) << "1 and 2, 3 to 5, 6 to 8";
  EXPECT_TRUE(FitsUniform(Values(counts)));
  const CatalogueTask task("associative_recall",
                           Parameters({{"compositional", true}, {"pairs", int64_t{15}}}));
  std::vector<int64_t> places(9);
  for (uint32_t row = 0; row < 2000; ++row) {
    const Tokens input = task.Draw(60, row).input;
    std::set<int32_t> first, second;
    std::set<std::pair<int32_t, int32_t>> keys;
    for (size_t i = 0; i < 27; i += 3) {
      first.insert(input[i]);
      second.insert(input[i + 1]);
      keys.emplace(input[i], input[i + 1]);
    }
    ASSERT_EQ(first.size(), 3U);
    ASSERT_EQ(second.size(), 3U);
    ASSERT_EQ(keys.size(), 9U);
    const std::pair smallest = *keys.begin();
    for (size_t i = 0; i < 9; ++i) {
      if (std::pair(input[3 * i], input[3 * i + 1]) == smallest) ++places[i];
    }
  }
  EXPECT_TRUE(FitsUniform(places));
}

TEST(RecallTest, ShortInputsHaveFewerPairs) {
  const CatalogueTask task("associative_recall");
  for (const auto& [length, pairs] : std::map<int64_t, int64_t>{{4, 1}, {8, 2}, {16, 4}, {64, 4}}) {
    const Tokens target = task.Draw(length, 0).target;
    EXPECT_EQ(static_cast<int64_t>(target.size()) - std::count(target.begin(), target.end(), 0),
              pairs)
        << length;
  }
}

TEST(RecallTest, OnlyAnswersCount) {
  EXPECT_EQ(CatalogueTask("associative_recall").Mask({0, 300, 0, 511}),
            (std::vector<uint8_t>{0, 1, 0, 1}));
}

TEST(FlipFlopTest, InstructionsAndBitsFollowTheDefinition) {
  // One instruction between the first and the last: write 10 %, read 10 %, ignore 80 %.
  std::vector<double> probabilities;
  const std::map<Tokens, int64_t> counts = CountInputs("flip_flop", {}, 5);
  for (const auto& [input, count] : counts) {
    EXPECT_EQ(input[0], kWrite);
    EXPECT_EQ(input[4], kRead);
    EXPECT_TRUE(input[2] != kRead || input[1] == input[3]);
    probabilities.push_back(input[2] == kIgnore ? 0.8 / 4 : input[2] == kRead ? 0.1 / 2 : 0.1 / 4);
  }
  ASSERT_EQ(counts.size(), 4U + 2U + 4U);
  EXPECT_TRUE(Fits(Values(counts), probabilities));
}

TEST(FlipFlopTest, LastWriteCounts) {
  EXPECT_EQ(Solved("flip_flop", {}, {kWrite, 4, kRead}), Tokens{1});
  EXPECT_EQ(Solved("flip_flop", {}, {kWrite, 4, kIgnore, 3, kRead, 4, kRead}), Tokens{1});
  EXPECT_EQ(Solved("flip_flop", {}, {kWrite, 4, kWrite, 3, kIgnore, 4, kRead}), Tokens{0});
}

TEST(SelectiveCopyTest, PlacesAndTokensAreUniform) {
  const std::map<Tokens, int64_t> counts =
      CountInputs("selective_copy", {{"vocabulary", int64_t{4}}, {"tokens", int64_t{2}}}, 4);
  ASSERT_EQ(counts.size(), 6U * 2U * 2U) << "pairs of places, and of the tokens 1 and 2";
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

TEST(SelectiveCopyTest, CopiesInOrder) {
  EXPECT_EQ(Solved("selective_copy", {{"tokens", int64_t{3}}}, {0, 5, 0, 0, 2, 14, 0}),
            (Tokens{5, 2, 14}));
  EXPECT_EQ(Solved("selective_copy", {}, {5, 2}), (Tokens{5, 2})) << "fewer than 16 have no noise";
}

TEST(CountingTest, CountsEachItemFromZero) {
  EXPECT_EQ(Solved("counting", {}, {9, 9, 6, 9, 0, 8, 9}), (Tokens{0, 1, 0, 2, 0, 0, 3}));
  EXPECT_EQ(Solved("counting", {{"items", int64_t{1}}, {"modulus", int64_t{3}}}, {0, 0, 0, 0, 0}),
            (Tokens{0, 1, 2, 0, 1}));
  const std::map<Tokens, int64_t> counts = CountInputs("counting", {{"items", int64_t{3}}}, 2);
  ASSERT_EQ(counts.size(), 9U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

TEST(DigitSumTest, WritesTheLeastSignificantDigitFirst) {
  EXPECT_EQ(Solved("digit_sum", {}, {7}), Tokens{7});
  EXPECT_EQ(Solved("digit_sum", {}, {9, 9, 8}), (Tokens{6, 2}));
  EXPECT_EQ(Solved("digit_sum", {}, {1, 0}), (Tokens{1, 0})) << "two digits, as 9 + 9 has";
  EXPECT_EQ(Solved("digit_sum", {}, Tokens(12, 9)), (Tokens{8, 0, 1}));
  const std::map<Tokens, int64_t> counts = CountInputs("digit_sum", {}, 2);
  ASSERT_EQ(counts.size(), 100U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

TEST(WordProblemTest, LaterElementsPermuteFirst) {
  // S3 in order: 012, 021, 102, 120, 201, 210. After 102, 021 gives i -> 102[021[i]] = 120.
  EXPECT_EQ(Solved("word_problem", {{"group", std::string("S3")}}, {2, 1, 1}), (Tokens{2, 3, 2}));
  EXPECT_EQ(Solved("word_problem", {{"group", std::string("Z60")}}, {59, 2, 30}),
            (Tokens{59, 1, 31}));
  const std::map<Tokens, int64_t> counts =
      CountInputs("word_problem", {{"group", std::string("S3")}}, 2);
  ASSERT_EQ(counts.size(), 36U);
  EXPECT_TRUE(FitsUniform(Values(counts)));
}

TEST(MistakesTest, ParameterAndItsLimitsAreNamed) {
  const auto message = [](const std::string& name, const Given& given) {
    return std::string(CreateTask(name, Parameters(given)).status().message());
  };
  EXPECT_THAT(message("associative_recall", {{"vocabulary", int64_t{5}}}),
              AllOf(HasSubstr("associative_recall.vocabulary"), HasSubstr("5"), HasSubstr("6")));
  EXPECT_THAT(message("associative_recall", {{"power", 1.5}}),
              AllOf(HasSubstr("associative_recall.power"), HasSubstr("1.5")));
  EXPECT_THAT(message("flip_flop", {{"ignore", -0.1}}), HasSubstr("flip_flop.ignore"));
  EXPECT_THAT(message("selective_copy", {{"tokens", int64_t{0}}}),
              HasSubstr("selective_copy.tokens"));
  EXPECT_THAT(message("counting", {{"modulus", int64_t{1}}}), HasSubstr("counting.modulus"));
  EXPECT_THAT(message("word_problem", {{"group", std::string("S6")}}),
              AllOf(HasSubstr("word_problem.group"), HasSubstr("S6"), HasSubstr("S5")));
}

}  // namespace
}  // namespace lengthwise::tasks::memory
