// Checks every task of Ruoss et al. 2023 at each length of the paper's evaluation: samples agree
// with the task's definition and with its catalogue entry.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/catalogue.h"
#include "tasks/chomsky/testing/drawn_sample.h"

namespace lengthwise::tasks::chomsky {
namespace {

class EveryTaskTest : public ::testing::TestWithParam<const TaskEntry*> {
 protected:
  const TaskEntry& entry() const { return *GetParam(); }
  const CatalogueTask task_{GetParam()->name};
};

bool AreTokens(const std::vector<int32_t>& tokens, int32_t size) {
  return std::all_of(tokens.begin(), tokens.end(),
                     [size](int32_t token) { return token >= 0 && token < size; });
}

bool HasTerminator(const TransductionTask& task) {
  // Tasks without a terminator count every output token.
  const std::vector<int32_t> target = {2, 0};
  std::vector<uint8_t> mask(2);
  task.Mask(target, absl::MakeSpan(mask));
  return mask[1] == 0;
}

TEST_P(EveryTaskTest, SamplesAreSolvedAtEveryLengthTo500) {
  for (int64_t n = 1; n <= 500; ++n) {
    for (uint32_t row = 0; row < 4; ++row) {
      const DrawnSample sample = task_.Draw(n, row);
      ASSERT_TRUE(AreTokens(sample.input, task_->input_size())) << n;
      ASSERT_TRUE(AreTokens(sample.target, task_->output_size())) << n;
      ASSERT_EQ(task_.Solve(sample.input, sample.target.size()), sample.target) << n;
    }
  }
}

TEST_P(EveryTaskTest, InputLengthIsExactOrOneShorter) {
  for (int64_t n = 1; n <= 500; ++n) {
    EXPECT_LE(task_->InputLength(n), n);
    EXPECT_GE(task_->InputLength(n), std::max<int64_t>(n - 1, 1));
    EXPECT_EQ(task_->OutputLength(n), task_->OutputLength(task_->InputLength(n)));
    EXPECT_GE(task_->OutputLength(n), 1);
  }
}

TEST_P(EveryTaskTest, EveryOutputTokenOccurs) {
  std::set<int32_t> seen;
  for (uint32_t row = 0; row < 200; ++row) {
    for (const int32_t token : task_.Draw(11, row).target) seen.insert(token);
  }
  EXPECT_EQ(static_cast<int32_t>(seen.size()), task_->output_size());
}

// Compares samples whose inputs are permutations of each other. Their targets must all agree
// exactly for the tasks that the entry declares permutation-invariant.
TEST_P(EveryTaskTest, PermutationInvarianceMatchesTheEntry) {
  std::map<std::vector<int32_t>, std::set<std::vector<int32_t>>> targets_by_tokens;
  size_t orders = 0;
  for (uint32_t row = 0; row < 3000; ++row) {
    DrawnSample sample = task_.Draw(7, row);
    std::sort(sample.input.begin(), sample.input.end());
    orders += targets_by_tokens.count(sample.input);
    targets_by_tokens[sample.input].insert(sample.target);
  }
  ASSERT_GT(orders, 0U);
  bool depends = false;
  for (const auto& [tokens, targets] : targets_by_tokens) depends |= targets.size() > 1;
  // By its definition this task depends on the order, so the paper does not list it as invariant.
  // The test below shows that it reduces to a parity.
  const bool is_a_parity = entry().name == "missing_duplicate_string";
  EXPECT_EQ(entry().permutation_invariant || is_a_parity, !depends);
}

TEST_P(EveryTaskTest, GuessingAccuracyMatchesTheEntry) {
  const bool terminated = HasTerminator(*task_);
  random::Stream guesses(1, random::Purpose::kPreview, 0);
  int64_t right = 0, places = 0;
  for (uint32_t row = 0; places < 40000; ++row) {
    const DrawnSample sample = task_.Draw(40, row);
    const std::vector<uint8_t> mask = task_.Mask(sample.target);
    for (size_t i = 0; i < sample.target.size(); ++i) {
      // For tasks with a terminator, the paper's 50 % is the chance of guessing a bit, not a
      // terminator.
      if (mask[i] == 0 || (terminated && sample.target[i] == 2)) continue;
      const uint32_t choices = terminated ? 2 : static_cast<uint32_t>(task_->output_size());
      right += static_cast<int32_t>(guesses.Below(choices)) == sample.target[i];
      ++places;
    }
  }
  // Four standard deviations of 40,000 independent places.
  EXPECT_NEAR(static_cast<double>(right) / static_cast<double>(places), entry().random_accuracy,
              0.01);
}

TEST(MissingDuplicateStringTest, MissingBitIsTheParityOfTheOthers) {
  const CatalogueTask task("missing_duplicate_string");
  for (int64_t n = 1; n <= 40; ++n) {
    for (uint32_t row = 0; row < 50; ++row) {
      const DrawnSample sample = task.Draw(n, row);
      const auto ones = std::count(sample.input.begin(), sample.input.end(), 1);
      EXPECT_EQ(sample.target[0], ones % 2);
    }
  }
}

std::vector<const TaskEntry*> TasksOfThePaper() {
  std::vector<const TaskEntry*> entries;
  for (const TaskEntry* entry : TaskEntries()) {
    if (absl::StrContains(entry->documentation, "Ruoss et al. 2023")) entries.push_back(entry);
  }
  return entries;
}

INSTANTIATE_TEST_SUITE_P(AllTasks, EveryTaskTest, ::testing::ValuesIn(TasksOfThePaper()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace lengthwise::tasks::chomsky
