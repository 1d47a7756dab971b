// Tests the evaluator with networks whose outputs are known.
#include "worker/evaluation/evaluator.h"

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "ATen/ops/one_hot.h"
#include "c10/core/GradMode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::evaluation {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Task that copies its ternary input. Only the first two outputs count.
class Copy : public tasks::TransductionTask {
 public:
  int32_t input_size() const override { return 3; }
  int32_t output_size() const override { return 3; }
  int64_t OutputLength(int64_t n) const override { return n; }
  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    for (int32_t& token : input) token = static_cast<int32_t>(stream.Below(3));
    Solve(input, target);
  }
  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    std::copy(input.begin(), input.end(), target.begin());
  }
  void Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const override {
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i < 2;
  }
};

// Network that gives one class a logit of `certainty` and the others 0: the right class, except at
// the first output, where it is class 0. Records its inputs.
class Oracle : public models::Network {
 public:
  explicit Oracle(double certainty) : certainty_(certainty) {}

  at::Tensor Forward(const models::ParameterSet& parameters, const models::NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const models::DropoutNumbers* dropout,
                     models::Capture* capture) const override {
    const at::Tensor& tokens = input.tokens;
    EXPECT_FALSE(dropout->training());
    EXPECT_FALSE(c10::GradMode::is_enabled());
    chunks.push_back(tokens.size(1));
    seen_positions.push_back(positions.clone());
    seen_numbers.push_back(*dropout);
    at::Tensor answer = tokens.narrow(2, 0, output_length).clone();
    answer.select(2, 0).zero_();
    if (capture != nullptr) {
      const int64_t n = tokens.size(2);
      for (int layer = 0; layer < 2; ++layer) {
        capture->attention_probabilities.push_back(
            at::full({tokens.size(0), tokens.size(1), 3, n, n}, 0.25 + layer));
      }
    }
    return at::one_hot(answer, 3).to(parameters[0].scalar_type()) * certainty_;
  }

  bool HoldsLogits(const at::Tensor&) const override { return holds_logits; }

  bool holds_logits = true;
  mutable std::vector<int64_t> chunks;
  mutable std::vector<at::Tensor> seen_positions;
  mutable std::vector<models::DropoutNumbers> seen_numbers;

 private:
  const double certainty_;
};

class EvaluatorTest : public ::testing::Test {
 protected:
  EvaluatorTest() {
    layout_.Add("unused", {1}, {});
    catalogue::Parameters encoding;
    encoding.Set("randomized", true);
    encoding.Set("max_position", int64_t{1000});
    positions_ = std::make_unique<models::PositionPolicy>(encoding);
    arena_ = std::make_unique<models::ParameterArena>(layout_, 2, at::kFloat, at::kCPU);
  }

  std::optional<std::vector<LengthScore>> Score(
      const Oracle& oracle, int64_t length, int64_t sequences, int64_t memory_bytes,
      const std::function<bool()>& keep_going = [] { return true; }) {
    const Evaluator evaluator(examples_, oracle, *positions_,
                              {.seed = 5, .heads = 1, .d_model = 4, .memory_bytes = memory_bytes});
    return evaluator.Score(arena_->Members(0, 2), length, sequences, keep_going);
  }

  const std::unique_ptr<data::Examples> owned_ =
      data::CreateTransductionExamples(std::make_unique<Copy>());
  const data::Examples& examples_ = *owned_;
  models::ParameterLayout layout_;
  std::unique_ptr<models::PositionPolicy> positions_;
  std::unique_ptr<models::ParameterArena> arena_;
};

constexpr int64_t kPlenty = int64_t{1} << 30;

TEST_F(EvaluatorTest, MaskAppliesToAccuracyButNotToLoss) {
  const Oracle oracle(2.0);
  constexpr int kSequences = 3000, kLength = 6;
  const auto scores = Score(oracle, kLength, kSequences, kPlenty);
  ASSERT_TRUE(scores.has_value());
  ASSERT_EQ(scores->size(), 2);
  EXPECT_EQ((*scores)[0].accuracy, (*scores)[1].accuracy);
  // Two outputs count. The second is always right, the first in a third of the sequences.
  const double accuracy = (*scores)[0].accuracy;
  EXPECT_NEAR(accuracy, (1 + 1.0 / 3) / 2, 0.02);
  // The loss follows from the share of right outputs: log(e^2 + 2), minus 2 where right.
  const double wrong = (1 - accuracy) * 2 / kLength;
  EXPECT_NEAR((*scores)[0].loss, std::log(std::exp(2.0) + 2) - 2 * (1 - wrong), 1e-6);
}

TEST_F(EvaluatorTest, ChunksDoNotChangeTheScores) {
  const Oracle whole(2.0);
  const auto expected = Score(whole, 6, 50, kPlenty);
  EXPECT_THAT(whole.chunks, ElementsAre(50));
  for (const int64_t memory_bytes : {1, 200'000}) {
    const Oracle oracle(2.0);
    const auto scores = Score(oracle, 6, 50, memory_bytes);
    EXPECT_GT(oracle.chunks.size(), 1);
    EXPECT_EQ((*scores)[1].accuracy, (*expected)[1].accuracy);
    EXPECT_NEAR((*scores)[1].loss, (*expected)[1].loss, 1e-12);
  }
}

TEST_F(EvaluatorTest, ChunksAndMembersShareOnePositionDraw) {
  const Oracle oracle(2.0);
  Score(oracle, 6, 3, 1);
  Score(oracle, 6, 3, kPlenty);
  ASSERT_EQ(oracle.seen_positions.size(), 4);
  for (const at::Tensor& positions : oracle.seen_positions) {
    EXPECT_TRUE(at::equal(positions, oracle.seen_positions[0]));
    EXPECT_TRUE(at::equal(positions[0], positions[1]));
  }
  Score(oracle, 7, 3, kPlenty);
  EXPECT_FALSE(at::equal(oracle.seen_positions[4].narrow(2, 0, 12), oracle.seen_positions[0]));
}

TEST_F(EvaluatorTest, BlocksMayHaveTheirOwnPositions) {
  catalogue::Parameters encoding;
  encoding.Set("randomized", true);
  encoding.Set("max_position", int64_t{1000});
  encoding.Set("draws", std::string("per_block"));
  const models::PositionPolicy per_block(encoding, 3);
  const Oracle shared(2.0), oracle(2.0);
  Evaluator(examples_, shared, *positions_, {.seed = 5})
      .CaptureAttention(arena_->Members(0, 2), 4, 0);
  Evaluator(examples_, oracle, per_block, {.seed = 5})
      .CaptureAttention(arena_->Members(0, 2), 4, 0);
  const at::Tensor& drawn = oracle.seen_positions[0];
  EXPECT_EQ(drawn.sizes(), (std::vector<int64_t>{2, 3, 8}));
  // The first block's draw is the one that all blocks would share.
  EXPECT_TRUE(at::equal(drawn.narrow(1, 0, 1), shared.seen_positions[0]));
  EXPECT_FALSE(at::equal(drawn.select(1, 0), drawn.select(1, 1)));
  EXPECT_FALSE(at::equal(drawn.select(1, 1), drawn.select(1, 2)));
}

TEST_F(EvaluatorTest, SequenceScoresAddUpToTheTotal) {
  const Oracle oracle(2.0);
  for (const int64_t memory_bytes : {int64_t{1}, kPlenty}) {
    const Evaluator evaluator(examples_, oracle, *positions_,
                              {.seed = 5, .heads = 1, .d_model = 4, .memory_bytes = memory_bytes});
    const auto scores =
        evaluator.Score(arena_->Members(0, 2), 6, 40, [] { return true; }, {.each_sequence = true});
    for (const LengthScore& score : *scores) {
      ASSERT_EQ(score.each_accuracy.size(), 40);
      ASSERT_EQ(score.each_loss.size(), 40);
      // The second output is right; the first is right if its input is 0.
      EXPECT_THAT(score.each_accuracy, Each(AnyOf(0.5F, 1.0F)));
      double accuracy = 0, loss = 0;
      for (size_t i = 0; i < 40; ++i) {
        accuracy += score.each_accuracy[i];
        loss += score.each_loss[i];
      }
      EXPECT_DOUBLE_EQ(accuracy / 40, score.accuracy);
      EXPECT_NEAR(loss / 40, score.loss, 1e-6);
    }
  }
  EXPECT_TRUE(Score(oracle, 6, 4, kPlenty)->front().each_accuracy.empty());
}

TEST_F(EvaluatorTest, EachSequenceHasItsOwnNoise) {
  const Oracle oracle(2.0);
  const Evaluator evaluator(examples_, oracle, *positions_,
                            {.seed = 5, .heads = 1, .d_model = 4, .memory_bytes = 1});
  (void)evaluator.Score(arena_->Members(0, 2), 6, 3, [] { return true; },
                        {.embedding_noise = 0.25});
  ASSERT_EQ(oracle.seen_numbers.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(oracle.seen_numbers[i].embedding_noise, 0.25);
    EXPECT_EQ(oracle.seen_numbers[i].first_sequence, static_cast<int64_t>(i));
    EXPECT_THAT(oracle.seen_numbers[i].seeds, ElementsAre(5, 5));
  }
}

// The sequences are those of a training step on these examples.
TEST_F(EvaluatorTest, ScoresDataSetExampleByExample) {
  const Oracle oracle(2.0);
  const Evaluator evaluator(examples_, oracle, *positions_,
                            {.seed = 5, .heads = 1, .d_model = 4, .memory_bytes = kPlenty});
  data::Batch batch;
  examples_.AppendTraining(
      {.seed = 9, .purpose = random::Purpose::kDataSet, .step = 6, .rows = {0, 1, 2, 3, 4}}, 6,
      batch);
  double expected = 0;
  for (int row = 0; row < 5; ++row) expected += batch.targets[row * 6] == 0 ? 1 : 0.5;
  const auto score = evaluator.ScoreDataSet(arena_->Members(0, 1), 9, 6, 5, [] { return true; });
  ASSERT_TRUE(score.has_value());
  EXPECT_DOUBLE_EQ(score->accuracy, expected / 5);
  EXPECT_EQ(score->sequences, 5);
}

TEST_F(EvaluatorTest, StopsOnRequest) {
  const Oracle oracle(2.0);
  int asked = 0;
  EXPECT_FALSE(Score(oracle, 6, 50, 1, [&] { return ++asked < 4; }).has_value());
  EXPECT_EQ(oracle.chunks.size(), 3);
}

TEST_F(EvaluatorTest, KeepsTheFirstAnswersAndTheFirstMistakes) {
  // The oracle is wrong at the first output unless the right class is 0, and right elsewhere.
  const Oracle oracle(2.0);
  const Evaluator evaluator(examples_, oracle, *positions_, {.seed = 5, .heads = 3, .d_model = 4});
  data::Batch batch;
  examples_.AppendEvaluation({.seed = 5, .n = 4, .asked = 50, .first = 0, .count = 50}, batch);
  std::vector<int> wanted;
  for (int i = 0, wrong = 0; i < 50; ++i) {
    const bool is_wrong = batch.targets[static_cast<size_t>(4 * i)] != 0;
    if (i < 3 || (is_wrong && wrong < 3)) wanted.push_back(i);
    wrong += is_wrong;
  }
  const auto scores =
      evaluator.Score(arena_->Members(0, 2), 4, 50, [] { return true; }, {.answers = 3});
  for (const LengthScore& score : *scores) {
    std::vector<int> kept;
    for (const v1::Answer& answer : score.answers) {
      kept.push_back(answer.sequence());
      const auto first = static_cast<size_t>(4 * answer.sequence());
      const std::string a = std::to_string(batch.targets[first]),
                        b = std::to_string(batch.targets[first + 1]);
      EXPECT_EQ(answer.length(), 4);
      EXPECT_EQ(answer.input().substr(0, 3), a + " " + b);
      EXPECT_EQ(answer.input().size(), 7u) << "no place for outputs: " << answer.input();
      // Two of four outputs count.
      EXPECT_THAT(answer.expected(), ElementsAre(a, b));
      EXPECT_THAT(answer.given(), ElementsAre("0", b));
      EXPECT_THAT(answer.wrong(), a == "0" ? ElementsAreArray(std::vector<int>())
                                           : ElementsAreArray(std::vector<int>{0}));
    }
    EXPECT_EQ(kept, wanted);
  }
  // Nothing else changes.
  const auto plain = evaluator.Score(arena_->Members(0, 2), 4, 50, [] { return true; });
  EXPECT_EQ(plain->front().accuracy, scores->front().accuracy);
  EXPECT_EQ(plain->front().loss, scores->front().loss);
  EXPECT_TRUE(plain->front().answers.empty());
}

TEST_F(EvaluatorTest, AnswersTheUsersInput) {
  const Oracle oracle(2.0);
  const Evaluator evaluator(examples_, oracle, *positions_, {.seed = 5, .heads = 3, .d_model = 4});
  v1::TokenSequence input;
  for (const int32_t token : {2, 1, 0}) input.add_tokens(token);
  const v1::Answer answer =
      evaluator.Predict(arena_->Members(1, 1), examples_.Given(input).value());
  EXPECT_EQ(answer.input(), "2 1 0");
  EXPECT_THAT(answer.given(), ElementsAre("0", "1", "0"));
  EXPECT_EQ(answer.expected_size() + answer.wrong_size(), 0);
}

// Whatever the chunks; a map of a sequence shows its own positions.
TEST_F(EvaluatorTest, SequencesMayHaveTheirOwnPositions) {
  catalogue::Parameters encoding;
  encoding.Set("positions", std::string("uniform_reals"));
  encoding.Set("max_position", int64_t{1000});
  encoding.Set("draws", std::string("per_sequence"));
  const models::PositionPolicy own(encoding);
  std::vector<at::Tensor> seen;
  for (const int64_t memory_bytes : {kPlenty, int64_t{1}}) {
    const Oracle oracle(2.0);
    const Evaluator evaluator(examples_, oracle, own,
                              {.seed = 5, .heads = 3, .d_model = 4, .memory_bytes = memory_bytes});
    EXPECT_TRUE(evaluator.Score(arena_->Members(0, 2), 4, 3, [] { return true; }).has_value());
    seen.push_back(at::cat(oracle.seen_positions, 2));
    const v1::AttentionMap map = evaluator.CaptureAttention(arena_->Members(1, 1), 4, 2);
    EXPECT_EQ(map.positions_size(), 0);
    ASSERT_EQ(map.real_positions_size(), 8);
    EXPECT_EQ(map.real_positions(5), seen[0][1][0][2][5].item<double>());
  }
  EXPECT_EQ(seen[0].sizes(), (std::vector<int64_t>{2, 1, 3, 8}));
  EXPECT_TRUE(at::equal(seen[0], seen[1]));
  EXPECT_TRUE(at::equal(seen[0][0], seen[0][1])) << "members share them";
  EXPECT_FALSE(at::equal(seen[0].select(2, 0), seen[0].select(2, 1)));
}

TEST_F(EvaluatorTest, CapturesAttentionOfTheGivenSequence) {
  const Oracle oracle(2.0);
  const Evaluator evaluator(examples_, oracle, *positions_, {.seed = 5, .heads = 3, .d_model = 4});
  const v1::AttentionMap map = evaluator.CaptureAttention(arena_->Members(1, 1), 4, 0);
  EXPECT_EQ(map.length(), 4);
  EXPECT_EQ(map.sequence(), 0);
  EXPECT_EQ(map.layers(), 2);
  EXPECT_EQ(map.heads(), 3);
  ASSERT_EQ(map.tokens_size(), 8);
  EXPECT_THAT(std::vector<int>(map.tokens().begin() + 4, map.tokens().end()), Each(3));
  ASSERT_EQ(map.positions_size(), 8);
  EXPECT_EQ(map.positions(3), oracle.seen_positions[0][0][0][3].item<double>());
  // Two layers of 3 x 8 x 8 floats each.
  ASSERT_EQ(map.probabilities().size(), 2 * 3 * 8 * 8 * 4);
  const float* probabilities = reinterpret_cast<const float*>(map.probabilities().data());
  EXPECT_FLOAT_EQ(probabilities[3 * 8 * 8 - 1], 0.25);
  EXPECT_FLOAT_EQ(probabilities[3 * 8 * 8], 1.25);

  data::Batch batch;
  examples_.AppendEvaluation({.seed = 5, .n = 4, .asked = 8, .first = 7, .count = 1}, batch);
  const v1::AttentionMap later = evaluator.CaptureAttention(arena_->Members(1, 1), 4, 7);
  EXPECT_EQ(later.sequence(), 7);
  EXPECT_THAT(later.tokens(), ElementsAreArray(batch.tokens));
  EXPECT_EQ(oracle.seen_numbers.back().first_sequence, 7);
}

class ChunkingTest : public EvaluatorTest {
 protected:
  // Returns how many of 64 sequences of 2 * `length` tokens two members get at once.
  int64_t FirstChunk(int64_t length, int64_t memory_bytes, bool holds_logits) {
    Oracle oracle(2.0);
    oracle.holds_logits = holds_logits;
    EXPECT_TRUE(Score(oracle, length, 64, memory_bytes).has_value());
    return oracle.chunks.front();
  }
};

TEST_F(ChunkingTest, LogitsOfLongSequencesDominate) {
  // 400 x 400 logits x 4 bytes x 2 members are 1.28 MB per copy.
  constexpr int64_t kLogitBytes = 1'280'000;
  EXPECT_GE(FirstChunk(200, 60 * kLogitBytes, true), 10);
  EXPECT_LE(FirstChunk(200, 60 * kLogitBytes, true), 30);
}

TEST_F(ChunkingTest, MemoryIsLinearWithoutHeldLogits) {
  constexpr int64_t kMemory = 5'000'000;
  EXPECT_EQ(FirstChunk(100, kMemory, false), 2 * FirstChunk(200, kMemory, false));
  EXPECT_GT(FirstChunk(100, kMemory, false), 3 * FirstChunk(100, kMemory, true));
}

TEST_F(ChunkingTest, NumbersOfTwiceTheSizeHalveTheChunk) {
  const int64_t of_floats = FirstChunk(50, 4'000'000, true);
  arena_ = std::make_unique<models::ParameterArena>(layout_, 2, at::kDouble, at::kCPU);
  EXPECT_EQ(FirstChunk(50, 4'000'000, true), of_floats / 2);
}

TEST_F(ChunkingTest, ChunkHasAtLeastOneSequence) { EXPECT_EQ(FirstChunk(50, 1, true), 1); }

}  // namespace
}  // namespace lengthwise::worker::evaluation
