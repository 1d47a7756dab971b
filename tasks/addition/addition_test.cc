#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/addition/format.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/text_task.h"

namespace lengthwise::tasks::addition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tokens = std::vector<int32_t>;

class AdditionTask {
 public:
  explicit AdditionTask(
      const std::vector<std::pair<std::string, catalogue::ParameterValue>>& given = {}) {
    catalogue::Parameters parameters;
    for (const auto& [name, value] : given) parameters.Set(name, value);
    std::vector<catalogue::Problem> problems;
    owner_ = DecimalAddition().create(
        catalogue::Resolve(DecimalAddition(), parameters, "task", problems));
    EXPECT_TRUE(problems.empty());
    task_ = dynamic_cast<const TextTask*>(owner_.get());
  }
  const TextTask& operator*() const { return *task_; }
  const TextTask* operator->() const { return task_; }

  TextExample Draw(int64_t size, uint32_t row, bool augmented = false) const {
    random::Stream stream(1, random::Purpose::kPreview, static_cast<uint64_t>(size), row);
    return task_->Sample(size, augmented, stream);
  }
  std::string Text(int64_t size, uint32_t row) const {
    return task_->Format(Draw(size, row).tokens);
  }

 private:
  std::unique_ptr<Task> owner_;
  const TextTask* task_ = nullptr;
};

AdditionTask Plain(const std::string& order, bool zero_padding = true) {
  return AdditionTask({{"order", order}, {"index_hints", false}, {"zero_padding", zero_padding}});
}

// Reads the answer of a text such as "0123+0456=0579<eos>".
unsigned long long Value(std::string digits, bool reversed) {
  if (reversed) std::reverse(digits.begin(), digits.end());
  return std::stoull(digits);
}

TEST(AdditionIdsTest, CoupledDigitsOfEqualPlaceShareAnId) {
  const AdditionTask reversed_answer({{"order", std::string("reversed_answer")},
                                      {"index_hints", false},
                                      {"coupling", std::string("digits")}});
  ASSERT_TRUE(reversed_answer->has_ids());
  TextExample example;
  example.tokens = *reversed_answer->Parse("021+043=460");
  example.tokens.push_back(kEnd);
  example.prompt = 8;
  EXPECT_THAT(reversed_answer->Ids(example, example.tokens),
              ElementsAre(4, 3, 2, 1, 4, 3, 2, 1, 2, 3, 4, 0));
  // What a model writes follows the rule, and has 0 past the answer's places.
  example.tokens = *reversed_answer->Parse("021+043=+6123");
  EXPECT_THAT(reversed_answer->Ids(example, example.tokens),
              ElementsAre(4, 3, 2, 1, 4, 3, 2, 1, 0, 3, 4, 0, 0));
}

TEST(AdditionIdsTest, UnpaddedAnswersHaveRoomForTheCarry) {
  const AdditionTask reversed({{"order", std::string("reversed")},
                               {"index_hints", false},
                               {"zero_padding", false},
                               {"coupling", std::string("digits")}});
  TextExample example;
  example.tokens = *reversed->Parse("99+10=001");
  example.prompt = 6;
  EXPECT_THAT(reversed->Ids(example, example.tokens), ElementsAre(2, 3, 1, 2, 3, 1, 2, 3, 4));
}

TEST(AdditionIdsTest, AbacusCountsWithinEachNumber) {
  const AdditionTask abacus({{"index_hints", false}, {"coupling", std::string("abacus")}});
  TextExample example;
  example.tokens = *abacus->Parse("120+340=46");
  example.prompt = 8;
  EXPECT_THAT(abacus->Ids(example, example.tokens), ElementsAre(1, 2, 3, 0, 1, 2, 3, 0, 1, 2));
  EXPECT_FALSE(Plain("reversed")->has_ids());
}

TEST(AdditionIdsTest, TheSignsOfThreeOperandsShareAnIdInEveryOrder) {
  const AdditionTask task({{"order", std::string("standard")},
                           {"operands", int64_t{3}},
                           {"index_hints", false},
                           {"coupling", std::string("digits")}});
  TextExample example;
  example.tokens = *task->Parse("012+099+030=141");
  example.prompt = 12;
  EXPECT_THAT(task->Ids(example, example.tokens),
              ElementsAre(4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2));
}

TEST(AdditionIdsTest, LargestIdIsThatOfAllExamples) {
  for (const int64_t operands : {2, 3, 10}) {
    for (const char* coupling : {"digits", "abacus"}) {
      for (const char* order : {"standard", "reversed", "reversed_answer"}) {
        const AdditionTask task({{"order", std::string(order)},
                                 {"operands", operands},
                                 {"index_hints", false},
                                 {"coupling", std::string(coupling)}});
        ASSERT_TRUE(task->Check(7).ok());
        const TextExample example = task.Draw(7, 0);
        const Tokens ids = task->Ids(example, example.tokens);
        EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), task->LargestId(7))
            << operands << " " << coupling << " " << order;
        EXPECT_EQ(ids.back(), 0) << "the end token";
      }
    }
  }
}

TEST(AdditionIdsTest, CouplingNeedsWholeNumbers) {
  for (const auto& given : std::vector<std::pair<std::string, catalogue::ParameterValue>>{
           {"index_hints", true}, {"random_space", 0.1}, {"order", std::string("paired")}}) {
    const AdditionTask task({{"index_hints", false}, {"coupling", std::string("abacus")}, given});
    EXPECT_THAT(std::string(task->Check(3).message()), HasSubstr("coupling")) << given.first;
  }
  const AdditionTask standard({{"order", std::string("standard")},
                               {"index_hints", false},
                               {"zero_padding", false},
                               {"coupling", std::string("digits")}});
  EXPECT_THAT(std::string(standard->Check(3).message()), HasSubstr("zero_padding"));
}

TEST(DecimalAdditionTest, TheAnswerAloneMayBeReversed) {
  const AdditionTask task = Plain("reversed_answer", /*zero_padding=*/false);
  for (uint32_t row = 0; row < 20; ++row) {
    const std::string text = task.Text(3, row);
    EXPECT_EQ(Value(text.substr(0, 3), false) + Value(text.substr(4, 3), false),
              Value(text.substr(8, text.find('<') - 8), true))
        << text;
    EXPECT_TRUE(task->Compare(task.Draw(3, row), task.Draw(3, row).Answer()).is_exact);
  }
}

TEST(DecimalAdditionTest, AddsInEveryOrder) {
  for (const char* order : {"standard", "reversed"}) {
    for (const bool padding : {false, true}) {
      const bool reversed = std::string(order) == "reversed";
      const AdditionTask task = Plain(order, padding);
      for (int64_t size = 1; size <= 15; ++size) {
        for (uint32_t row = 0; row < 50; ++row) {
          const std::string text = task.Text(size, row);
          const size_t plus = text.find('+'), equals = text.find('='), end = text.find('<');
          const std::string a = text.substr(0, plus), b = text.substr(plus + 1, equals - plus - 1),
                            sum = text.substr(equals + 1, end - equals - 1);
          const auto digits = static_cast<size_t>(size) + (padding ? 1 : 0);
          EXPECT_EQ(a.size(), digits);
          EXPECT_EQ(b.size(), digits);
          EXPECT_GE(sum.size(), digits);
          EXPECT_LE(sum.size(), static_cast<size_t>(size) + 1);
          EXPECT_EQ(Value(a, reversed) + Value(b, reversed), Value(sum, reversed)) << text;
        }
      }
    }
  }
}

TEST(DecimalAdditionTest, AddsManyNumbers) {
  for (const char* order : {"standard", "reversed"}) {
    for (const int64_t operands : {3, 10}) {
      const AdditionTask task(
          {{"order", std::string(order)}, {"index_hints", false}, {"operands", operands}});
      for (int64_t size = 1; size <= 12; ++size) {
        const std::string text = task.Text(size, 0);
        const auto digits = static_cast<size_t>(size) + 1;
        ASSERT_EQ(static_cast<int64_t>(task.Draw(size, 0).tokens.size()),
                  task->LongestExample(size));
        unsigned long long sum = 0;
        for (size_t i = 0; i < static_cast<size_t>(operands); ++i) {
          sum += Value(text.substr(i * (digits + 1), digits), order[0] == 'r');
        }
        EXPECT_EQ(sum, Value(text.substr(text.find('=') + 1, digits), order[0] == 'r')) << text;
      }
    }
  }
  const AdditionTask paired(
      {{"order", std::string("paired")}, {"index_hints", false}, {"operands", int64_t{3}}});
  EXPECT_EQ(static_cast<int64_t>(paired.Draw(4, 0).tokens.size()), paired->LongestExample(4));
}

TEST(DecimalAdditionTest, ManyNumbersHaveCarriesAboveOne) {
  // 95 + 96 + 19 = 210: the ones sum to 20, and the tens to 19, or 21 with the carry.
  const Problem problem = {{5, 9}, {6, 9}, {9, 1}};
  EXPECT_EQ(Sum(problem), (Digits{0, 1, 2}));
  EXPECT_EQ(CarriesInto(problem), (Digits{0, 2, 2}));
  EXPECT_THAT(CarryDistances(problem), ElementsAre(0, 1, 1));
  // 45 + 46 + 09 = 100: the tens sum to 8, and reach 10 with the carry of 2.
  EXPECT_THAT(CarryDistances({{5, 4}, {6, 4}, {9, 0}}), ElementsAre(0, 1, 2));
  const AdditionTask task({{"index_hints", false}, {"operands", int64_t{3}}});
  const TextExample sum = Write(problem, {.index_hints = false}, 0);
  EXPECT_EQ(FormatTokens(sum.tokens), "590+690+910=012<eos>");
  EXPECT_THAT(task->Compare(sum, {0, 2, 2, kEnd}).wrong_digits, ElementsAre(1));
  EXPECT_THAT(task->Compare(sum, {0, 2, 2, kEnd}).carry_distances, ElementsAre(0, 1, 1));
}

TEST(DecimalAdditionTest, OperandsHaveTheSizesDigits) {
  const AdditionTask task = Plain("standard", false);
  std::vector<int64_t> first(9), second(10), single(10);
  for (uint32_t row = 0; row < 4000; ++row) {
    const std::string text = task.Text(2, row);
    ++first.at(static_cast<size_t>(text[0] - '1'));
    ++second.at(static_cast<size_t>(text[1] - '0'));
    ++single.at(static_cast<size_t>(task.Text(1, row)[0] - '0'));
  }
  EXPECT_TRUE(chomsky::FitsUniform(first)) << "1 to 9";
  EXPECT_TRUE(chomsky::FitsUniform(second));
  EXPECT_TRUE(chomsky::FitsUniform(single)) << "0 to 9";
}

TEST(DecimalAdditionTest, LeadingZerosCanBeDrawn) {
  const AdditionTask task(
      {{"order", std::string("standard")}, {"index_hints", false}, {"leading_zeros", true}});
  std::vector<int64_t> counts(10);
  for (uint32_t row = 0; row < 4000; ++row) {
    ++counts.at(static_cast<size_t>(task.Text(3, row)[1] - '0'));
  }
  EXPECT_TRUE(chomsky::FitsUniform(counts));
}

TEST(DecimalAdditionTest, HintsAreConsecutiveFromAUniformStart) {
  const AdditionTask task;
  std::vector<int64_t> starts(100);  // 102 - (2 + 1) + 1
  for (uint32_t row = 0; row < 10000; ++row) {
    const Tokens tokens = task.Draw(2, row).tokens;
    const int32_t start = tokens[0];
    ++starts.at(static_cast<size_t>(start - kFirstHint));
    for (const size_t number : {0, 7, 14}) {
      for (int32_t digit = 0; digit < 3; ++digit) {
        ASSERT_EQ(tokens[number + 2 * static_cast<size_t>(digit)], start + digit);
        ASSERT_TRUE(IsDigit(tokens[number + 2 * static_cast<size_t>(digit) + 1]));
      }
    }
  }
  EXPECT_TRUE(chomsky::FitsUniform(starts));
}

TEST(DecimalAdditionTest, HintsCanWrap) {
  const AdditionTask task({{"hints_wrap", true}});
  std::set<int32_t> starts;
  bool wrapped = false;
  for (uint32_t row = 0; row < 5000; ++row) {
    const Tokens tokens = task.Draw(2, row).tokens;
    starts.insert(tokens[0]);
    for (const int32_t token : tokens) ASSERT_LT(token, kEnd + 1);
    wrapped |= tokens[0] == kEnd - 1 && tokens[2] == kFirstHint;
  }
  EXPECT_EQ(starts.size(), 102U);
  EXPECT_TRUE(wrapped);
}

TEST(DecimalAdditionTest, FewHintSymbolsCanBeUsed) {
  for (const bool wrap : {false, true}) {
    const AdditionTask task({{"hint_symbols", int64_t{6}}, {"hints_wrap", wrap}});
    std::set<int32_t> starts, symbols;
    for (uint32_t row = 0; row < 500; ++row) {
      const Tokens tokens = task.Draw(2, row).tokens;
      starts.insert(tokens[0]);
      for (const int32_t token : tokens) {
        if (IsHint(token)) symbols.insert(token - kFirstHint);
      }
    }
    EXPECT_THAT(symbols, ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(starts.size(), wrap ? 6U : 4U);
    EXPECT_TRUE(task->Check(5).ok());
    EXPECT_THAT(std::string(task->Check(6).message()),
                HasSubstr("1 to 5 digits with index hints (6"));
    EXPECT_EQ(task->vocabulary(), 117) << "a model can go on with more";
  }
  const AdditionTask none({{"hint_symbols", int64_t{6}}, {"index_hints", false}});
  EXPECT_THAT(std::string(none->Check(3).message()), HasSubstr("has no effect without"));
}

TEST(DecimalAdditionTest, VocabularyHas116TokensAndPadding) {
  const AdditionTask task;
  EXPECT_EQ(task->vocabulary(), 117);
  EXPECT_EQ(task->end_token(), 115);
  EXPECT_EQ(task->padding_token(), 116);
  EXPECT_EQ(task->LongestExample(100), 609) << "3 numbers of 101 hinted digits, + = and the end";
  EXPECT_EQ(static_cast<int64_t>(task.Draw(100, 0).tokens.size()), 609);
}

TEST(DecimalAdditionTest, RefusesSizesWithoutExamples) {
  const AdditionTask hinted;
  EXPECT_TRUE(hinted->Check(101).ok());
  EXPECT_THAT(std::string(hinted->Check(102).message()), HasSubstr("1 to 101 digits with index"));
  EXPECT_FALSE(hinted->Check(0).ok());
  EXPECT_TRUE(Plain("standard")->Check(102).ok());
  const AdditionTask paired({{"order", std::string("paired")}});
  EXPECT_THAT(std::string(paired->Check(3).message()), HasSubstr("paired digits have no index"));
}

TEST(RandomSpaceTest, BlanksAreInsertedInTrainingOnly) {
  const AdditionTask task({{"random_space", 0.2}});
  int64_t blanks = 0, places = 0;
  for (uint32_t row = 0; row < 500; ++row) {
    const TextExample plain = task.Draw(5, row), augmented = task.Draw(5, row, true);
    EXPECT_EQ(std::count(plain.tokens.begin(), plain.tokens.end(), kBlank), 0);
    Tokens without = augmented.tokens;
    without.erase(std::remove(without.begin(), without.end(), kBlank), without.end());
    EXPECT_EQ(without, plain.tokens);
    EXPECT_EQ(augmented.tokens[augmented.prompt - 1], kEquals);
    EXPECT_NE(augmented.tokens[augmented.tokens.size() - 2], kBlank) << "none before the end";
    blanks += static_cast<int64_t>(augmented.tokens.size() - plain.tokens.size());
    places += static_cast<int64_t>(plain.tokens.size()) - 1;
  }
  // Geometric: p / (1 - p) blanks at a place, here 0.25 with a variance of 0.3125.
  EXPECT_NEAR(static_cast<double>(blanks) / static_cast<double>(places), 0.25, 0.02);
}

TEST(RandomSpaceTest, BlankProbabilityCanDecay) {
  const AdditionTask lasting({{"random_space", 0.4}});
  const AdditionTask decaying({{"random_space", 0.4}, {"random_space_decay", 0.1}});
  EXPECT_TRUE(decaying->augments());
  int64_t places = 0;
  std::vector<int64_t> runs(4);  // by number of consecutive blanks: places with at least as many
  for (uint32_t row = 0; row < 500; ++row) {
    EXPECT_EQ(decaying.Draw(5, row), lasting.Draw(5, row)) << "the same questions";
    const TextExample augmented = decaying.Draw(5, row, true);
    size_t blanks = 0;
    for (const int32_t token : augmented.tokens) {
      if (token == kBlank) {
        ++blanks;
        continue;
      }
      if (token != kEnd) ++places;
      for (size_t i = 1; i <= std::min<size_t>(blanks, 3); ++i) ++runs[i];
      blanks = 0;
    }
  }
  const auto share = [&](size_t i) {
    return static_cast<double>(runs[i]) / static_cast<double>(places);
  };
  EXPECT_NEAR(share(1), 0.4, 0.015);
  EXPECT_NEAR(share(2), 0.4 * 0.04, 0.004);
  EXPECT_NEAR(share(3), 0.4 * 0.04 * 0.004, 0.0005);
  const AdditionTask none({{"random_space_decay", 0.1}});
  EXPECT_THAT(std::string(none->Check(3).message()), HasSubstr("has no effect without"));
}

// 42 + 39 = 81, with a carry into the tens.
const TextExample kSum = Write({{2, 4}, {9, 3}}, {.index_hints = false}, 0);  // 240+930=180
Tokens Written(const std::string& digits, bool end = true) {
  Tokens tokens;
  for (const char c : digits) tokens.push_back(c == ' ' ? kBlank : c - '0');
  if (end) tokens.push_back(kEnd);
  return tokens;
}

TEST(CompareTest, AnswerIsExactWithItsEnd) {
  const AdditionTask task = Plain("reversed");
  EXPECT_TRUE(task->Compare(kSum, Written("180")).is_exact);
  EXPECT_TRUE(task->Compare(kSum, Written(" 18  0")).is_exact) << "blanks count for nothing";
  const AnswerComparison unended = task->Compare(kSum, Written("180", false));
  EXPECT_FALSE(unended.is_exact);
  EXPECT_TRUE(unended.has_right_digits);
  EXPECT_FALSE(task->Compare(kSum, Written("1800")).has_right_digits);
  Tokens after_the_end = Written("180");
  after_the_end.push_back(7);
  EXPECT_TRUE(task->Compare(kSum, after_the_end).is_exact);
}

TEST(CompareTest, NamesWrongDigitsAndTheFirstCarry) {
  const AdditionTask task = Plain("reversed");
  const AnswerComparison tens = task->Compare(kSum, Written("170"));
  EXPECT_THAT(tens.wrong_digits, ElementsAre(1));
  EXPECT_EQ(tens.places, 3);
  EXPECT_EQ(tens.first_wrong_has_carry, true);
  const AnswerComparison ones = task->Compare(kSum, Written("281"));
  EXPECT_THAT(ones.wrong_digits, ElementsAre(0, 2));
  EXPECT_EQ(ones.first_wrong_has_carry, false);
  EXPECT_THAT(task->Compare(kSum, Written("1")).wrong_digits, ElementsAre(1, 2)) << "missing";
  EXPECT_THAT(task->Compare(kSum, Written("180")).wrong_digits, IsEmpty());
  EXPECT_EQ(task->Compare(kSum, Written("180")).first_wrong_has_carry, std::nullopt);
}

TEST(CompareTest, StandardOrderCountsFromTheRight) {
  const AdditionTask task = Plain("standard");
  const TextExample sum =
      Write({{2, 4}, {9, 3}}, {.order = Order::kStandard, .index_hints = false}, 0);  // 081
  EXPECT_THAT(task->Compare(sum, Written("071")).wrong_digits, ElementsAre(1));
  EXPECT_EQ(task->Compare(sum, Written("071")).first_wrong_has_carry, true);
  EXPECT_THAT(task->Compare(sum, Written("08")).wrong_digits, ElementsAre(0));
}

TEST(CompareTest, KnowsCarryDistances) {
  // 0 6 4 5 7 2 + 1 3 5 5 8 9: 2 + 9 carries, and so do 7 + 8 and 5 + 5. The last carry propagates
  // through 4 + 5 and 6 + 3.
  const TextExample sum =
      Write({{2, 7, 5, 4, 6, 0}, {9, 8, 5, 5, 3, 1}}, {.index_hints = false}, 0);
  const AdditionTask task = Plain("reversed");
  const Tokens right(sum.Answer().begin(), sum.Answer().end());
  EXPECT_THAT(task->Compare(sum, right).carry_distances, ElementsAre(0, 1, 1, 1, 2, 3, 0));
  EXPECT_THAT(task->Compare(sum, Written("0")).carry_distances, ElementsAre(0, 1, 1, 1, 2, 3, 0));
}

TEST(CompareTest, WrongHintsCanHaveRightDigits) {
  const AdditionTask task;
  const TextExample example = task.Draw(4, 0);
  Tokens answer(example.Answer().begin(), example.Answer().end());
  EXPECT_TRUE(task->Compare(example, answer).is_exact);
  answer[0] = answer[0] == kFirstHint ? kFirstHint + 1 : kFirstHint;
  EXPECT_FALSE(task->Compare(example, answer).is_exact);
  EXPECT_TRUE(task->Compare(example, answer).has_right_digits);
}

TEST(TrainingExampleTest, SizesAreUniformUpToTheLargest) {
  const AdditionTask task;
  std::vector<int64_t> sizes(5);
  for (uint32_t i = 0; i < 5000; ++i) {
    const TextExample example = TrainingExample(*task, {.seed = 3, .largest_size = 5}, 9, i);
    ++sizes.at((example.tokens.size() - 3) / 6 - 2);
  }
  EXPECT_TRUE(chomsky::FitsUniform(sizes));
}

TEST(TrainingExampleTest, FixedSetRepeatsItsExamples) {
  const AdditionTask task;
  const TextData data{.seed = 3, .largest_size = 20, .examples = 50};
  std::set<Tokens> different;
  for (uint64_t step = 0; step < 10; ++step) {
    for (uint32_t i = 0; i < 100; ++i) {
      different.insert(TrainingExample(*task, data, step, i).tokens);
    }
  }
  EXPECT_LE(different.size(), 50U);
  EXPECT_GE(different.size(), 48U) << "1,000 draws from 50 leave none out, or nearly none";
}

TEST(VocabularyTest, TokensReadAsTheyAreWritten) {
  for (int32_t token = 0; token < kTokens; ++token) {
    const std::string text = FormatTokens({&token, 1});
    EXPECT_EQ(ParseToken(text).value(), token) << text;
  }
  EXPECT_FALSE(ParseToken("<h102>").ok());
  EXPECT_FALSE(ParseToken("?").ok());
  const std::vector<int32_t> tokens = {1, kBlank, kPlus, kFirstHint + 7, 9, kEquals};
  EXPECT_EQ(ParseTokens(FormatTokens(tokens)).value(), tokens);
  for (const std::string text : {"1<h7", "1-2", "<eos>"}) {
    EXPECT_FALSE(ParseTokens(text).ok()) << text;
  }
}

}  // namespace
}  // namespace lengthwise::tasks::addition
