#include "worker/evaluation/language_evaluator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "c10/core/GradMode.h"
#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/parameters/layout.h"
#include "tasks/catalogue.h"

namespace lengthwise::worker::evaluation {
namespace {

using data::TextExamples;
using ::testing::ElementsAre;
using Answers = std::vector<std::vector<int32_t>>;

constexpr int64_t kDigits = 3;
constexpr int64_t kQuestions = 20;
constexpr uint64_t kSeed = 6;

const auto kGoOn = [] { return true; };

std::unique_ptr<TextExamples> Additions(const catalogue::Parameters& given = {}) {
  v1::Training training;
  training.mutable_packing()->set_tokens(64);
  return std::make_unique<TextExamples>(
      std::unique_ptr<tasks::TextTask>(dynamic_cast<tasks::TextTask*>(
          tasks::CreateTask("decimal_addition", given).value().release())),
      training);
}

std::vector<tasks::TextExample> Questions(const TextExamples& text) {
  std::vector<tasks::TextExample> questions;
  for (int64_t i = 0; i < kQuestions; ++i) questions.push_back(text.Question(kSeed, kDigits, i));
  return questions;
}

// Language model that writes a given continuation after every prefix of it.
class ScriptedModel : public models::LanguageModel {
 public:
  ScriptedModel(int64_t vocabulary, std::vector<std::vector<int32_t>> texts)
      : vocabulary_(vocabulary), texts_(std::move(texts)) {}

  at::Tensor Forward(const models::ParameterSet&, const models::ExampleGroups& examples,
                     const at::Tensor&, const models::DropoutNumbers*,
                     models::Capture*) const override {
    // All tokens are equally likely.
    return at::zeros({1, examples.tokens.size(1), vocabulary_});
  }
  std::unique_ptr<models::DecodingCache> StartDecoding(const at::Tensor&) const override {
    return std::make_unique<Seen>();
  }
  at::Tensor Decode(const models::ParameterSet&, const at::Tensor& tokens,
                    models::DecodingCache& cache) const override {
    at::Tensor logits = at::zeros({1, tokens.size(1), vocabulary_});
    std::vector<std::vector<int32_t>>& texts_seen = static_cast<Seen&>(cache).texts;
    texts_seen.resize(static_cast<size_t>(tokens.size(1)));
    for (int64_t b = 0; b < tokens.size(1); ++b) {
      std::vector<int32_t>& seen = texts_seen[static_cast<size_t>(b)];
      for (int64_t i = 0; i < tokens.size(2); ++i) {
        seen.push_back(
            static_cast<int32_t>(tokens.select(0, 0).select(0, b).select(0, i).item<int64_t>()));
      }
      for (const std::vector<int32_t>& text : texts_) {
        if (text.size() > seen.size() && std::equal(seen.begin(), seen.end(), text.begin())) {
          logits.select(0, 0).select(0, b).select(0, text[seen.size()]).fill_(1);
        }
      }
    }
    return logits;
  }

 private:
  struct Seen : models::DecodingCache {
    std::vector<std::vector<int32_t>> texts;
  };
  const int64_t vocabulary_;
  const std::vector<std::vector<int32_t>> texts_;
};

class LanguageEvaluatorTest : public testing::Test {
 protected:
  LanguageEvaluatorTest() {
    std::vector<catalogue::Problem> problems;
    catalogue::Parameters network, encoding;
    network.Set("blocks", int64_t{2});
    network.Set("heads", int64_t{2});
    network.Set("d_model", int64_t{16});
    encoding.Set("randomized", true);
    encoding.Set("max_position", int64_t{100});
    for (const models::NetworkEntry* entry : models::NetworkEntries()) {
      if (entry->name == "causal_decoder") {
        network = catalogue::Resolve(*entry, network, "", problems);
      }
    }
    for (const models::EncodingEntry* entry : models::EncodingEntries()) {
      if (entry->name == "rope") encoding = catalogue::Resolve(*entry, encoding, "", problems);
    }
    EXPECT_TRUE(problems.empty());
    model_ = models::CreateLanguageModel("causal_decoder", network, "rope", encoding,
                                         {.input_columns = text_->task().vocabulary(),
                                          .output_columns = text_->task().vocabulary(),
                                          .longest_sequence = text_->SequenceTokens(kDigits)},
                                         layout_)
                 .value();
    arena_ = std::make_unique<models::ParameterArena>(layout_, 1, at::kDouble, at::kCPU);
    arena_->Initialize(0, 3);
    // Sharper than its initial distribution, so that it writes more than one token.
    arena_->parameters().mul_(3);
    positions_ = std::make_unique<models::PositionPolicy>(encoding);
  }

  LanguageEvaluator Evaluator(const models::LanguageModel& model,
                              int64_t memory_bytes = int64_t{1} << 30) const {
    return LanguageEvaluator(
        *text_, model, *positions_,
        {.seed = kSeed, .blocks = 2, .d_model = 16, .memory_bytes = memory_bytes});
  }
  models::ParameterSet Parameters() const { return arena_->Members(0, 1); }

  const std::unique_ptr<TextExamples> text_ = Additions();
  models::ParameterLayout layout_;
  std::unique_ptr<models::LanguageModel> model_;
  std::unique_ptr<models::ParameterArena> arena_;
  std::unique_ptr<models::PositionPolicy> positions_;
};

TEST_F(LanguageEvaluatorTest, CachedDecodingMatchesFullForwardPasses) {
  const std::vector<tasks::TextExample> questions = Questions(*text_);
  const Answers answers =
      Evaluator(*model_).Answer(Parameters(), kDigits, questions, kGoOn).value();
  const c10::NoGradGuard no_gradients;
  const int64_t room = text_->SequenceTokens(kDigits);
  const std::vector<double> positions = positions_->DrawBatch(
      kSeed, random::Purpose::kEvaluationPositions, static_cast<uint64_t>(kDigits), room);
  const at::Tensor drawn = at::tensor(positions, at::kDouble).view({1, 1, room});
  for (size_t i = 0; i < questions.size(); ++i) {
    std::vector<int64_t> text(questions[i].Prompt().begin(), questions[i].Prompt().end());
    std::vector<int32_t> expected;
    while (static_cast<int64_t>(text.size()) < room) {
      const auto length = static_cast<int64_t>(text.size());
      const at::Tensor logits = model_->Forward(
          Parameters(),
          {.tokens = at::tensor(text, at::kLong).view({1, length}), .groups = {{1, length}}}, drawn,
          nullptr, nullptr);
      text.push_back(logits.select(0, 0).select(0, length - 1).argmax().item<int64_t>());
      expected.push_back(static_cast<int32_t>(text.back()));
      if (expected.back() == text_->task().end_token()) break;
    }
    EXPECT_EQ(answers[i], expected) << i;
    // Answered in a batch and alone.
    EXPECT_EQ(Evaluator(*model_).Answer(Parameters(), kDigits, {questions[i]}, kGoOn).value()[0],
              expected);
  }
}

// Every token that the model writes has the id that the task gives it after those before.
TEST_F(LanguageEvaluatorTest, WrittenTokensHaveTheIdsOfTheRule) {
  catalogue::Parameters task;
  task.Set("index_hints", false);
  task.Set("coupling", std::string("abacus"));
  const auto text = Additions(task);
  catalogue::Parameters options;
  options.Set("positions", std::string("data"));
  options.Set("max_position", int64_t{100});
  const models::PositionPolicy positions(options);
  ASSERT_TRUE(positions.each());
  const LanguageEvaluator evaluator(*text, *model_, positions,
                                    {.seed = kSeed, .blocks = 2, .d_model = 16});
  const std::vector<tasks::TextExample> questions = Questions(*text);
  const Answers answers = evaluator.Answer(Parameters(), kDigits, questions, kGoOn).value();
  const c10::NoGradGuard no_gradients;
  const auto room = static_cast<size_t>(text->SequenceTokens(kDigits));
  std::set<std::vector<int32_t>> different;
  for (size_t i = 0; i < questions.size(); ++i) {
    std::vector<int32_t> written(questions[i].Prompt().begin(), questions[i].Prompt().end());
    std::vector<int32_t> expected;
    while (written.size() < room) {
      const auto length = static_cast<int64_t>(written.size());
      const std::vector<int32_t> ids = text->task().Ids(questions[i], written);
      const at::Tensor logits = model_->Forward(
          Parameters(),
          {.tokens =
               at::tensor(std::vector<int64_t>(written.begin(), written.end())).view({1, length}),
           .groups = {{1, length}}},
          at::tensor(std::vector<double>(ids.begin(), ids.end())).view({1, 1, length}), nullptr,
          nullptr);
      expected.push_back(
          static_cast<int32_t>(logits.select(0, 0).select(0, length - 1).argmax().item<int64_t>()));
      written.push_back(expected.back());
      if (expected.back() == text->task().end_token()) break;
    }
    EXPECT_EQ(answers[i], expected) << i;
    different.insert(expected);
  }
  EXPECT_GT(different.size(), 1U);
  const auto score = evaluator.Score(Parameters(), kDigits, kQuestions, kGoOn);
  ASSERT_TRUE(score.has_value());
  const LanguageEvaluator in_chunks(*text, *model_, positions,
                                    {.seed = kSeed, .blocks = 2, .d_model = 16, .memory_bytes = 1});
  EXPECT_NEAR(in_chunks.Score(Parameters(), kDigits, kQuestions, kGoOn)->loss, score->loss, 1e-9);
}

TEST_F(LanguageEvaluatorTest, PromptsOfDifferentLengthsMatchSingleAnswers) {
  std::vector<tasks::TextExample> questions;
  for (int64_t i = 0; i < 9; ++i) {
    questions.push_back(text_->Question(kSeed, kDigits - i % 3, i));
  }
  const Answers answers =
      Evaluator(*model_).Answer(Parameters(), kDigits, questions, kGoOn).value();
  ASSERT_EQ(answers.size(), questions.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(answers[i],
              Evaluator(*model_).Answer(Parameters(), kDigits, {questions[i]}, kGoOn).value()[0])
        << i;
  }
}

TEST_F(LanguageEvaluatorTest, ChunksDoNotChangeTheScores) {
  const LengthScore whole = Evaluator(*model_).Score(Parameters(), kDigits, 30, kGoOn).value();
  const LengthScore parts =
      Evaluator(*model_, /*memory_bytes=*/40'000).Score(Parameters(), kDigits, 30, kGoOn).value();
  EXPECT_EQ(parts.accuracy, whole.accuracy);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-12);
  EXPECT_EQ(parts.errors->ShortDebugString(), whole.errors->ShortDebugString());
  EXPECT_GT(whole.loss, 0);
}

TEST_F(LanguageEvaluatorTest, CountsAnswersThatAreRightToTheLastToken) {
  std::vector<std::vector<int32_t>> texts;
  for (tasks::TextExample& question : Questions(*text_)) texts.push_back(question.tokens);
  // Answers are hint, digit, hint, digit, ..., end. One has a wrong hint, one a wrong last digit,
  // and one continues instead of ending.
  const size_t last = texts[0].size() - 2;
  texts[3][last - 1] = texts[3][last - 1] == 20 ? 21 : 20;
  texts[5][last] = (texts[5][last] + 1) % 10;
  texts[7].back() = 0;
  const ScriptedModel model(text_->task().vocabulary(), texts);
  const LengthScore score =
      Evaluator(model).Score(Parameters(), kDigits, kQuestions, kGoOn).value();
  EXPECT_DOUBLE_EQ(score.accuracy, 17.0 / 20);
  EXPECT_EQ(score.sequences, 20);
  // A wrong hint does not make digits wrong, but a surplus digit does.
  EXPECT_DOUBLE_EQ(score.metrics.at("digits_accuracy"), 18.0 / 20);
  EXPECT_THAT(score.errors->wrong_by_place(), ElementsAre(0, 0, 0, 1));
  EXPECT_NEAR(score.loss, std::log(117.0), 1e-6) << "all tokens are as likely";
}

TEST_F(LanguageEvaluatorTest, RecordsEachQuestionOnRequest) {
  std::vector<std::vector<int32_t>> texts;
  for (tasks::TextExample& question : Questions(*text_)) texts.push_back(question.tokens);
  const size_t last = texts[0].size() - 2;
  texts[5][last] = (texts[5][last] + 1) % 10;
  const ScriptedModel model(text_->task().vocabulary(), texts);
  const LengthScore score =
      Evaluator(model)
          .Score(Parameters(), kDigits, kQuestions, kGoOn, {.each_sequence = true})
          .value();
  ASSERT_EQ(score.each_accuracy.size(), static_cast<size_t>(kQuestions));
  for (size_t i = 0; i < score.each_accuracy.size(); ++i) {
    EXPECT_EQ(score.each_accuracy[i], i == 5 ? 0 : 1) << i;
    EXPECT_NEAR(score.each_loss[i], std::log(117.0), 1e-5) << "all tokens are as likely";
  }
  ASSERT_EQ(score.wrong_answers.size(), 1u);
  EXPECT_EQ(score.wrong_answers[0].sequence(), 5);
  EXPECT_THAT(score.wrong_answers[0].places(), ElementsAre(3));

  // Losses keep the order of questions across chunks, and their mean is the length's loss.
  const ScoreOptions each = {.each_sequence = true};
  const LengthScore whole =
      Evaluator(*model_).Score(Parameters(), kDigits, kQuestions, kGoOn, each).value();
  const LengthScore parts = Evaluator(*model_, /*memory_bytes=*/40'000)
                                .Score(Parameters(), kDigits, kQuestions, kGoOn, each)
                                .value();
  double sum = 0;
  for (size_t i = 0; i < whole.each_loss.size(); ++i) {
    EXPECT_NEAR(parts.each_loss[i], whole.each_loss[i], 1e-6);
    sum += whole.each_loss[i];
  }
  EXPECT_NEAR(sum / kQuestions, whole.loss, 1e-5);
  EXPECT_EQ(parts.wrong_answers.size(), whole.wrong_answers.size());
  const LengthScore first = Evaluator(*model_).Score(Parameters(), kDigits, 1, kGoOn).value();
  EXPECT_NEAR(whole.each_loss[0], first.loss, 1e-6);
  EXPECT_TRUE(first.each_loss.empty() && first.wrong_answers.empty());
}

TEST_F(LanguageEvaluatorTest, StopsBeforeTheNextToken) {
  for (int allowed = 0; allowed < 5; ++allowed) {
    int asked = 0;
    const auto keep_going = [&] { return ++asked <= allowed; };
    EXPECT_FALSE(Evaluator(*model_).Score(Parameters(), kDigits, 30, keep_going).has_value());
    EXPECT_EQ(asked, allowed + 1);
  }
}

}  // namespace
}  // namespace lengthwise::worker::evaluation
