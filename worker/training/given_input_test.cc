#include "worker/training/given_input.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<tasks::TransductionTask> Create(const std::string& name) {
  return std::unique_ptr<tasks::TransductionTask>(
      static_cast<tasks::TransductionTask*>(tasks::CreateTask(name, {}).value().release()));
}

std::string Refusal(const tasks::TransductionTask& task, const std::vector<int32_t>& tokens) {
  const auto length = LengthOfInput(task, tokens);
  EXPECT_EQ(length.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(length.status().message());
}

TEST(LengthOfInputTest, IsTheNumberOfTokens) {
  const auto task = Create("reverse_string");
  EXPECT_EQ(LengthOfInput(*task, {0, 1, 1}).value(), 3);
}

TEST(LengthOfInputTest, EveryLengthOfEveryTaskIsFound) {
  for (const tasks::TaskEntry* entry : tasks::TaskEntries()) {
    const auto task = Create(entry->name);
    for (int64_t n = 1; n <= 50; ++n) {
      const std::vector<int32_t> input(static_cast<size_t>(task->InputLength(n)));
      const auto length = LengthOfInput(*task, input);
      ASSERT_TRUE(length.ok()) << entry->name << " " << n << ": " << length.status();
      EXPECT_EQ(task->InputLength(*length), task->InputLength(n));
    }
  }
}

TEST(LengthOfInputTest, RefusalsSayWhatIsAccepted) {
  const auto task = Create("reverse_string");
  EXPECT_THAT(Refusal(*task, {0, 2}), HasSubstr("token 2 is 2"));
  EXPECT_THAT(Refusal(*task, {0, 2}), HasSubstr("0 to 1"));
  EXPECT_THAT(Refusal(*task, {-1}), HasSubstr("token 1 is -1"));
  EXPECT_THAT(Refusal(*task, {}), HasSubstr("0 tokens"));
  // Sums and differences alternate with numbers: their inputs are of odd length.
  const auto arithmetic = Create("modular_arithmetic");
  EXPECT_THAT(Refusal(*arithmetic, {0, 0, 0, 0}), HasSubstr("4 tokens"));
  EXPECT_THAT(Refusal(*arithmetic, {0, 0, 0, 0}), HasSubstr("has 3"));
}

}  // namespace
}  // namespace lengthwise::worker::training
