#include "worker/data/text_examples.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"
#include "worker/data/testing/addition_texts.h"

namespace lengthwise::worker::data {
namespace {

using ::testing::ElementsAre;

// Returns the examples of passes one by one.
std::vector<TextPiece> Pieces(const std::vector<TextPass>& passes) {
  std::vector<TextPiece> pieces;
  for (const TextPass& pass : passes) {
    auto token = pass.tokens.begin();
    auto target = pass.targets.begin();
    for (const TextPass::Group& group : pass.groups) {
      for (int64_t i = 0; i < group.examples; ++i) {
        pieces.push_back({{token, token + group.length}, {target, target + group.length}});
        token += group.length;
        target += group.length;
      }
    }
    EXPECT_TRUE(token == pass.tokens.end() && target == pass.targets.end());
  }
  return pieces;
}

// Packing by definition: examples 0, 1, 2, ... of the step until the next does not fit.
TEST(TextExamplesTest, StepHasTheExamplesThatFit) {
  const TextExamples text = AdditionTexts();
  std::multiset<std::vector<int64_t>> expected;
  const tasks::TextData data = {.seed = 7, .smallest_size = 2, .largest_size = 9};
  int64_t sequence = 0, used = 0;
  for (uint32_t i = 0;; ++i) {
    const tasks::TextExample example = tasks::TrainingExample(text.task(), data, 3, i);
    const auto length = static_cast<int64_t>(example.tokens.size());
    if (used + length > kTokens) {
      ++sequence;
      used = 0;
    }
    if (sequence == kSequences) break;
    used += length;
    expected.insert({example.tokens.begin(), example.tokens.end()});
  }
  std::multiset<std::vector<int64_t>> actual;
  for (const TextPiece& piece : Pieces(text.TrainingPasses(7, 3))) actual.insert(piece.tokens);
  EXPECT_EQ(actual, expected);
}

TEST(TextExamplesTest, EveryTokenIsATarget) {
  for (const TextPiece& piece : Pieces(AdditionTexts().TrainingPasses(7, 3))) {
    for (size_t i = 0; i + 1 < piece.tokens.size(); ++i) {
      EXPECT_EQ(piece.targets[i], piece.tokens[i + 1]);
    }
    EXPECT_EQ(piece.targets.back(), tasks::kNoTarget);
  }
}

TEST(TextExamplesTest, LossMayCountAnswersOnly) {
  v1::Training training = AdditionTraining();
  training.mutable_packing()->set_answers_only(true);
  constexpr int64_t kEquals = 11;
  for (const TextPiece& piece : Pieces(AdditionTexts(training).TrainingPasses(7, 3))) {
    const auto equals = std::find(piece.tokens.begin(), piece.tokens.end(), kEquals);
    for (size_t i = 0; i + 1 < piece.tokens.size(); ++i) {
      const bool in_prompt = i < static_cast<size_t>(equals - piece.tokens.begin());
      EXPECT_EQ(piece.targets[i], in_prompt ? tasks::kNoTarget : piece.tokens[i + 1]);
    }
  }
}

TEST(TextExamplesTest, PassesAreGroupsOfEqualLengthThatFit) {
  const std::vector<TextPass> passes = AdditionTexts().TrainingPasses(7, 3);
  ASSERT_GE(passes.size(), 2u) << "as many tokens as two passes";
  int64_t last = 0;
  for (const TextPass& pass : passes) {
    EXPECT_LE(static_cast<int64_t>(pass.tokens.size()), kPassTokens);
    int64_t within = 0;
    for (const TextPass::Group& group : pass.groups) {
      EXPECT_GT(group.length, within) << "one group of each length";
      within = group.length;
    }
    EXPECT_GE(pass.groups.front().length, last);
    last = within;
    EXPECT_EQ(pass.Counted(), static_cast<int64_t>(pass.tokens.size()) - pass.examples());
  }
}

TEST(TextExamplesTest, PromptOfAUserHasThePositionsOfTheSmallestSizeThatFits) {
  const TextExamples examples = AdditionTexts();
  for (int64_t size = 1; size <= 4; ++size) {
    const tasks::TextExample question = examples.Question(7, size, 0);
    v1::TokenSequence input;
    input.set_text(examples.task().Format(question.Prompt()));
    const GivenSequence given = examples.Given(input).value();
    EXPECT_EQ(given.length, size);
    EXPECT_THAT(given.tokens, testing::ElementsAreArray(question.Prompt()));
  }
  v1::TokenSequence input;
  EXPECT_FALSE(examples.Given(input).ok());
  input.set_text("1*2=");
  EXPECT_THAT(std::string(examples.Given(input).status().message()),
              testing::HasSubstr("it has \"*\""));
}

TEST(TextExamplesTest, OversizedExampleGetsItsOwnPass) {
  const TextPiece large = {std::vector<int64_t>(kPassTokens + 1, 1),
                           std::vector<int64_t>(kPassTokens + 1, 1)};
  const TextPiece small = {{1, 2}, {2, tasks::kNoTarget}};
  const std::vector<TextPass> passes = MakePasses({large, small, large});
  ASSERT_EQ(passes.size(), 3u);
  EXPECT_EQ(passes[0].tokens, small.tokens);
  EXPECT_EQ(passes[2].tokens, large.tokens);
}

TEST(TextExamplesTest, AttendingAcrossMakesSequencesOnePiece) {
  v1::Training training = AdditionTraining();
  training.mutable_packing()->set_attend_across(true);
  const std::vector<TextPiece> pieces = Pieces(AdditionTexts(training).TrainingPasses(7, 3));
  EXPECT_EQ(pieces.size(), static_cast<size_t>(kSequences));
  for (const TextPiece& piece : pieces) {
    EXPECT_LE(piece.tokens.size(), static_cast<size_t>(kTokens));
    EXPECT_GT(piece.tokens.size(),
              static_cast<size_t>(kTokens - AdditionTexts().task().LongestExample(9)));
  }
  EXPECT_EQ(AdditionTexts(training).LongestTraining(training), kTokens);
}

TEST(TextExamplesTest, StepIsAFunctionOfSeedAndStep) {
  const auto tokens = [](uint64_t seed, int64_t step) {
    std::vector<int64_t> all;
    for (const TextPass& pass : AdditionTexts().TrainingPasses(seed, step)) {
      all.insert(all.end(), pass.tokens.begin(), pass.tokens.end());
    }
    return all;
  };
  EXPECT_EQ(tokens(1, 5), tokens(1, 5));
  EXPECT_NE(tokens(1, 5), tokens(2, 5));
  EXPECT_NE(tokens(1, 5), tokens(1, 6));
}

TEST(TextExamplesTest, FixedDataSetHasOnlyItsExamples) {
  v1::Training training = AdditionTraining();
  training.set_examples(30);
  std::set<std::vector<int64_t>> seen;
  const TextExamples text = AdditionTexts(training);
  for (const int64_t step : {1, 2}) {
    for (const TextPiece& piece : Pieces(text.TrainingPasses(7, step))) seen.insert(piece.tokens);
  }
  EXPECT_GE(seen.size(), 29u);
  EXPECT_LE(seen.size(), 30u);
}

v1::Training InEpochs(int64_t examples) {
  v1::Training training = AdditionTraining();
  training.set_examples(examples);
  training.set_without_replacement(true);
  return training;
}

std::vector<std::vector<int64_t>> ShownTokens(const TextExamples& text, uint64_t seed,
                                              int64_t step) {
  std::vector<std::vector<int64_t>> tokens;
  for (const TextPiece& piece : Pieces(text.TrainingPasses(seed, step))) {
    tokens.push_back(piece.tokens);
  }
  return tokens;
}

TEST(TextExamplesTest, EpochsLeaveNoExampleOut) {
  const TextExamples text = AdditionTexts(InEpochs(1000));
  std::map<std::vector<int64_t>, int> seen;
  int64_t examples = 0;
  for (int64_t step = 1; examples < 3000; ++step) {
    for (const std::vector<int64_t>& tokens : ShownTokens(text, 7, step))
      ++seen[tokens], ++examples;
  }
  // Examples with operands of two or more digits all differ. The last step may begin the fourth
  // epoch.
  EXPECT_EQ(seen.size(), 1000u);
  for (const auto& [tokens, times] : seen) EXPECT_GE(times, 3);
}

// With lengths that follow from sizes (0 spaces), and without.
class ResumedEpochsTest : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(RandomSpaces, ResumedEpochsTest, testing::Values(0, 0.1));

TEST_P(ResumedEpochsTest, ResumedTrialContinuesItsEpoch) {
  catalogue::Parameters spaces;
  spaces.Set("random_space", GetParam());
  const TextExamples undisturbed = AdditionTexts(InEpochs(500), spaces),
                     resumed = AdditionTexts(InEpochs(500), spaces);
  EXPECT_EQ(undisturbed.task().has_fixed_lengths(), GetParam() == 0);
  std::vector<std::vector<std::vector<int64_t>>> steps(1);
  for (int64_t step = 1; step <= 9; ++step) {
    steps.push_back(ShownTokens(undisturbed, 7, step));
    EXPECT_EQ(ShownTokens(undisturbed, 7, step), steps.back())
        << "for another member with this seed";
    (void)ShownTokens(undisturbed, 8, step);
  }
  EXPECT_EQ(ShownTokens(resumed, 7, 9), steps[9]);
  EXPECT_EQ(ShownTokens(resumed, 7, 4), steps[4]);
  EXPECT_NE(steps[3], steps[4]);
}

TEST(TextExamplesTest, DataSeedsOrderASharedSet) {
  v1::Training training = InEpochs(1000);
  const auto first_epoch = [&](uint64_t seed) {
    const TextExamples text = AdditionTexts(training);
    std::set<std::vector<int64_t>> seen;
    for (int64_t step = 1; seen.size() < 1000 && step < 20; ++step) {
      for (std::vector<int64_t>& tokens : ShownTokens(text, seed, step)) seen.insert(tokens);
    }
    return seen;
  };
  EXPECT_NE(first_epoch(1), first_epoch(2));
  training.set_data_set_seed(0);
  EXPECT_EQ(first_epoch(1), first_epoch(2));
  EXPECT_NE(ShownTokens(AdditionTexts(training), 1, 1), ShownTokens(AdditionTexts(training), 2, 1));
}

TEST(TextExamplesTest, MarkedPromptsSplitGroups) {
  v1::Training training = AdditionTraining();
  training.mutable_packing()->set_answers_only(true);
  catalogue::Parameters spaces;  // prompts differ among examples of equal length
  spaces.Set("random_space", 0.1);
  constexpr int64_t kEquals = 11;
  const TextExamples plain = AdditionTexts(training, spaces),
                     marked = AdditionTexts(training, spaces, true);
  std::multiset<std::vector<int64_t>> with, without;
  for (const TextPass& pass : plain.TrainingPasses(7, 3)) {
    for (const TextPass::Group& group : pass.groups) EXPECT_EQ(group.prompt, 0);
  }
  for (const TextPass& pass : marked.TrainingPasses(7, 3)) {
    auto token = pass.tokens.begin();
    for (const TextPass::Group& group : pass.groups) {
      for (int64_t i = 0; i < group.examples; ++i, token += group.length) {
        EXPECT_EQ(std::find(token, token + group.length, kEquals) - token, group.prompt - 1);
      }
    }
  }
  for (const TextPiece& piece : Pieces(plain.TrainingPasses(7, 3))) without.insert(piece.tokens);
  for (const TextPiece& piece : Pieces(marked.TrainingPasses(7, 3))) with.insert(piece.tokens);
  EXPECT_EQ(with, without);
}

TEST(TextExamplesTest, KnowsHowManyExamplesAStepHas) {
  const v1::Training training = AdditionTraining();
  const double examples = static_cast<double>(Pieces(AdditionTexts().TrainingPasses(7, 3)).size());
  EXPECT_NEAR(AdditionTexts().ExamplesOfStep(training) / examples, 1, 0.15);
}

TEST(TextExamplesTest, AnswerLossIncludesTheEndToken) {
  const tasks::TextExample example = {.tokens = {4, 5, 6, 7, 8}, .prompt = 3};
  const TextPiece piece = AdditionTexts().AnswerPiece(example);
  EXPECT_THAT(piece.tokens, ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(piece.targets, ElementsAre(-1, -1, 7, 8, -1));
}

// A model trained with random spaces has seen blanks and may write some.
TEST(TextExamplesTest, AnswersHaveRoomForAugmentation) {
  EXPECT_EQ(AdditionTexts().SequenceTokens(9), AdditionTexts().task().LongestExample(9));
  catalogue::Parameters spaces;
  spaces.Set("random_space", 0.1);
  EXPECT_GT(AdditionTexts(AdditionTraining(), spaces).SequenceTokens(9),
            AdditionTexts().SequenceTokens(9));
  EXPECT_EQ(AdditionTexts(AdditionTraining(), spaces).LongestTraining(AdditionTraining()), kTokens);
}

}  // namespace
}  // namespace lengthwise::worker::data
