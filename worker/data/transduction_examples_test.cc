#include <algorithm>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"
#include "worker/data/examples.h"
#include "worker/testing/tiny_trials.h"

namespace lengthwise::worker::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Task whose target is its ternary input twice; the second half does not count for accuracy.
class Twice : public tasks::TransductionTask {
 public:
  int32_t input_size() const override { return 3; }
  int32_t output_size() const override { return 3; }
  int64_t OutputLength(int64_t n) const override { return 2 * n; }
  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    for (int32_t& token : input) token = static_cast<int32_t>(stream.Below(3));
    Solve(input, target);
  }
  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    for (size_t i = 0; i < target.size(); ++i) target[i] = input[i % input.size()];
  }
  void Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const override {
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i < mask.size() / 2;
  }
};

const Examples& TwiceExamples() {
  static const Examples& examples =
      *CreateTransductionExamples(std::make_unique<Twice>()).release();
  return examples;
}

Batch Samples(uint64_t seed, int64_t first_row, int64_t rows) {
  Batch batch;
  TwiceExamples().AppendTraining({.seed = seed, .step = 5, .rows = RowsFrom(first_row, rows)}, 2,
                                 batch);
  return batch;
}

TEST(TransductionExamplesTest, AppendsAnEmptyTokenPerOutput) {
  const Batch batch = Samples(1, 0, 4);
  EXPECT_EQ(batch.rows, 4);
  EXPECT_EQ(batch.tokens_per_row, 2 + 4);
  EXPECT_EQ(batch.outputs_per_row, 4);
  ASSERT_EQ(batch.tokens.size(), 4 * 6);
  ASSERT_EQ(batch.targets.size(), 4 * 4);
  for (size_t row = 0; row < 4; ++row) {
    const int64_t* tokens = &batch.tokens[row * 6];
    const int64_t* targets = &batch.targets[row * 4];
    for (size_t i = 2; i < 6; ++i) EXPECT_EQ(tokens[i], 3);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(targets[i], tokens[i % 2]);
  }
}

TEST(TransductionExamplesTest, MaskComesFromTheTask) {
  EXPECT_THAT(Samples(1, 0, 2).mask, ElementsAre(1, 1, 0, 0, 1, 1, 0, 0));
}

TEST(TransductionExamplesTest, PartsAndMembersAreAppended) {
  Batch parts = Samples(1, 0, 3);
  TwiceExamples().AppendTraining({.seed = 1, .step = 5, .rows = RowsFrom(3, 5)}, 2, parts);
  EXPECT_EQ(parts.rows, 8);
  EXPECT_EQ(parts.tokens, Samples(1, 0, 8).tokens);
  EXPECT_EQ(parts.targets, Samples(1, 0, 8).targets);
  EXPECT_NE(Samples(1, 0, 8).tokens, Samples(2, 0, 8).tokens);
}

TEST(TransductionExamplesTest, RowsMayComeInAnyOrder) {
  Batch batch;
  TwiceExamples().AppendTraining({.seed = 1, .step = 5, .rows = {4, 0}}, 2, batch);
  const Batch fourth = Samples(1, 4, 1), first = Samples(1, 0, 1);
  EXPECT_EQ(batch.rows, 2);
  EXPECT_TRUE(std::equal(fourth.tokens.begin(), fourth.tokens.end(), batch.tokens.begin()));
  EXPECT_TRUE(std::equal(first.tokens.begin(), first.tokens.end(), batch.tokens.begin() + 6));
}

TEST(TransductionExamplesTest, SequenceTokensCountsInputAndOutput) {
  EXPECT_EQ(TwiceExamples().SequenceTokens(7), 21);
}

std::unique_ptr<Examples> CreateTransduction(const std::string& task) {
  return CreateExamples(tasks::CreateTask(task, {}).value(), v1::LengthRange());
}

std::string RefusalOfTokens(const Examples& examples, const std::vector<int32_t>& tokens) {
  const auto given = examples.Given(TokensOf(tokens));
  EXPECT_EQ(given.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(given.status().message());
}

TEST(TransductionExamplesTest, GivenInputGetsItsEmptyTokens) {
  const GivenSequence given =
      CreateTransduction("reverse_string")->Given(TokensOf({0, 1, 1})).value();
  EXPECT_EQ(given.length, 3);
  EXPECT_THAT(given.tokens, ElementsAre(0, 1, 1, 2, 2, 2));
}

TEST(TransductionExamplesTest, EveryLengthOfEveryTaskMayBeGiven) {
  for (const tasks::TaskEntry* entry : tasks::TaskEntries()) {
    if (entry->kind != tasks::TaskKind::kTransduction) continue;
    const auto examples = CreateTransduction(entry->name);
    for (int64_t n = 1; n <= 50; ++n) {
      const std::vector<int32_t> input(static_cast<size_t>(examples->InputTokens(n)));
      const auto given = examples->Given(TokensOf(input));
      ASSERT_TRUE(given.ok()) << entry->name << " " << n << ": " << given.status();
      EXPECT_EQ(examples->InputTokens(given->length), examples->InputTokens(n));
    }
  }
}

TEST(TransductionExamplesTest, RefusalsSayWhatIsAccepted) {
  const auto task = CreateTransduction("reverse_string");
  EXPECT_THAT(RefusalOfTokens(*task, {0, 2}), HasSubstr("token 2 is 2"));
  EXPECT_THAT(RefusalOfTokens(*task, {0, 2}), HasSubstr("0 to 1"));
  EXPECT_THAT(RefusalOfTokens(*task, {-1}), HasSubstr("token 1 is -1"));
  EXPECT_THAT(RefusalOfTokens(*task, {}), HasSubstr("0 tokens"));
  EXPECT_THAT(task->Given(NumbersOf({0.5})).status().message(), HasSubstr("inputs are tokens"));
  // Operators alternate with numbers, so inputs have odd lengths.
  const auto arithmetic = CreateTransduction("modular_arithmetic");
  EXPECT_THAT(RefusalOfTokens(*arithmetic, {0, 0, 0, 0}), HasSubstr("4 tokens"));
  EXPECT_THAT(RefusalOfTokens(*arithmetic, {0, 0, 0, 0}), HasSubstr("it has is 3"));
}

}  // namespace
}  // namespace lengthwise::worker::data
