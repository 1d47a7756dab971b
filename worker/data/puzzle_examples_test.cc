#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/puzzles.h"
#include "worker/data/examples.h"
#include "worker/testing/tiny_trials.h"

namespace lengthwise::worker::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Puzzles of two cells: a number, and a question mark that asks for the number. There are three
// conditions; the validation puzzles have the third, the first and the third.
class Echo : public tasks::PuzzleTask {
 public:
  int64_t cells() const override { return 2; }
  int32_t token_values() const override { return 6; }
  int32_t classes() const override { return 4; }
  int64_t training_puzzles() const override { return 4; }
  absl::Span<const std::string> conditions() const override { return conditions_; }
  absl::StatusOr<tasks::PuzzleData> Data(uint64_t seed) const override {
    if (seed == 13) return absl::NotFoundError("no puzzles for 13");
    tasks::PuzzleData data;
    for (int32_t puzzle = 0; puzzle < 4; ++puzzle) {
      Add(static_cast<int32_t>(seed + static_cast<uint64_t>(puzzle)) % 4, 0, data.training);
    }
    Add(3, 2, data.validation);
    Add(1, 0, data.validation);
    Add(2, 2, data.validation);
    return data;
  }
  std::string Format(absl::Span<const int32_t> tokens) const override { return {}; }

 private:
  static void Add(int32_t number, int32_t condition, tasks::PuzzleSet& set) {
    set.tokens.insert(set.tokens.end(), {number + 1, 5});
    set.classes.push_back(number);
    set.conditions.push_back(condition);
  }

  std::vector<std::string> conditions_ = {"easy", "middling", "hard"};
};

TEST(PuzzleExamplesTest, TrainsOnTheNumberedPuzzlesOfItsSeed) {
  const auto examples = CreatePuzzleExamples(std::make_unique<Echo>());
  ASSERT_TRUE(examples->Prepare(0).ok());
  ASSERT_TRUE(examples->Prepare(1).ok());
  Batch batch;
  examples->AppendTraining({.seed = 0, .rows = {3, 0}}, 2, batch);
  examples->AppendTraining({.seed = 1, .rows = {0, 1}}, 2, batch);
  EXPECT_EQ(batch.rows, 4);
  EXPECT_EQ(batch.tokens_per_row, 2);
  EXPECT_EQ(batch.outputs_per_row, 1);
  EXPECT_THAT(batch.tokens, ElementsAre(4, 5, 1, 5, 2, 5, 3, 5));
  EXPECT_THAT(batch.targets, ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(batch.mask, ElementsAre(1, 1, 1, 1));
}

TEST(PuzzleExamplesTest, ConditionsAreEvaluatedOnTheirValidationPuzzles) {
  const auto examples = CreatePuzzleExamples(std::make_unique<Echo>());
  ASSERT_TRUE(examples->Prepare(0).ok());
  EXPECT_EQ(examples->EvaluationSequences(1, 500), 1);
  EXPECT_EQ(examples->EvaluationSequences(2, 500), 0);
  EXPECT_EQ(examples->EvaluationSequences(3, 500), 2);
  EXPECT_EQ(examples->EvaluationSequences(3, 1), 1);
  Batch batch;
  examples->AppendEvaluation({.seed = 7, .n = 3, .asked = 2, .first = 1, .count = 1}, batch);
  examples->AppendEvaluation({.seed = 8, .n = 1, .asked = 2, .first = 0, .count = 1}, batch);
  EXPECT_THAT(batch.targets, ElementsAre(2, 1));
}

TEST(PuzzleExamplesTest, NetworkReadsCellsIncludingBlanks) {
  const auto examples = CreatePuzzleExamples(std::make_unique<Echo>());
  EXPECT_EQ(examples->input_columns(), 6);
  EXPECT_TRUE(examples->has_blank());
  EXPECT_EQ(examples->output_columns(), 4);
  EXPECT_EQ(examples->SequenceTokens(3), 2);
}

TEST(PuzzleExamplesTest, GivenPuzzlesAreChecked) {
  const auto examples = CreatePuzzleExamples(std::make_unique<Echo>());
  EXPECT_THAT(examples->Given(TokensOf({0, 5})).value().tokens, ElementsAre(0, 5));
  EXPECT_THAT(examples->Given(TokensOf({0})).status().message(), HasSubstr("1 tokens"));
  EXPECT_THAT(examples->Given(TokensOf({0, 6})).status().message(), HasSubstr("token 2 is 6"));
  EXPECT_THAT(examples->Given(NumbersOf({0, 5})).status().message(),
              HasSubstr("inputs are tokens"));
}

TEST(PuzzleExamplesTest, TaskErrorIsReturned) {
  const auto examples = CreatePuzzleExamples(std::make_unique<Echo>());
  EXPECT_EQ(examples->Prepare(13), absl::NotFoundError("no puzzles for 13"));
}

}  // namespace
}  // namespace lengthwise::worker::data
