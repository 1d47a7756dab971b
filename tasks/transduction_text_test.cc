// Every transduction task, asked as text.
#include "tasks/transduction_text.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/catalogue.h"

namespace lengthwise::tasks::transduction_text {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Transductions() {
  std::vector<std::string> names;
  for (const TaskEntry* entry : TaskEntries()) {
    if (entry->kind == TaskKind::kTransduction) names.push_back(entry->name);
  }
  return names;
}

random::Stream StreamOf(int64_t size) {
  return {/*seed=*/3, random::Purpose::kPreview, static_cast<uint64_t>(size), 0};
}

class TransductionTextTest : public testing::TestWithParam<std::string> {
 protected:
  TransductionTextTest()
      : asked_owner_(CreateTask(GetParam(), {}).value()),
        text_owner_(CreateTask(GetParam() + "_text", {}).value()),
        asked_(dynamic_cast<const TransductionTask&>(*asked_owner_)),
        text_(dynamic_cast<const TextTask&>(*text_owner_)) {}

  TextExample Draw(int64_t size) const {
    random::Stream stream = StreamOf(size);
    return text_.Sample(size, /*augmented=*/false, stream);
  }

  std::unique_ptr<Task> asked_owner_, text_owner_;
  const TransductionTask& asked_;
  const TextTask& text_;
};

TEST_P(TransductionTextTest, ExamplesAreInputSeparatorTargetAndEnd) {
  for (const int64_t size : {1, 2, 3, 7, 8, 20, 41, 100}) {
    const auto inputs = static_cast<size_t>(asked_.InputLength(size));
    const auto targets = static_cast<size_t>(asked_.OutputLength(size));
    std::vector<int32_t> input(inputs), target(targets);
    random::Stream stream = StreamOf(size);
    asked_.Sample(size, stream, absl::MakeSpan(input), absl::MakeSpan(target));
    std::vector<int32_t> expected = input;
    expected.push_back(std::max(asked_.input_size(), asked_.output_size()));
    expected.insert(expected.end(), target.begin(), target.end());
    expected.push_back(text_.end_token());
    const TextExample example = Draw(size);
    EXPECT_EQ(example.tokens, expected) << size;
    EXPECT_EQ(example.prompt, inputs + 1);
    EXPECT_TRUE(text_.Check(size).ok());
    EXPECT_LE(static_cast<int64_t>(expected.size()), text_.LongestExample(size));
    for (const int32_t token : expected) EXPECT_LT(token, text_.vocabulary());
    EXPECT_EQ(text_.Parse(text_.Format(example.Prompt())).value(),
              std::vector<int32_t>(expected.begin(),
                                   expected.begin() + static_cast<ptrdiff_t>(inputs) + 1));
  }
}

TEST_P(TransductionTextTest, AnswersAreRightAsAWhole) {
  const TextExample example = Draw(8);
  const std::vector<int32_t> right(example.Answer().begin(), example.Answer().end());
  std::vector<uint8_t> counts(right.size() - 1);
  asked_.Mask(absl::MakeSpan(right).first(counts.size()), absl::MakeSpan(counts));
  EXPECT_TRUE(text_.Compare(example, right).is_exact);
  EXPECT_TRUE(text_.Compare(example, right).wrong_digits.empty());
  EXPECT_FALSE(text_.Compare(example, absl::MakeSpan(right).first(right.size() - 1)).is_exact)
      << "it did not end";
  EXPECT_FALSE(text_.Compare(example, {}).is_exact);
  for (size_t i = 0; i < counts.size(); ++i) {
    std::vector<int32_t> given = right;
    given[i] = given[i] == 0 ? 1 : 0;
    const AnswerComparison comparison = text_.Compare(example, given);
    EXPECT_EQ(comparison.is_exact, counts[i] == 0) << i;
    const std::vector<int32_t> wrong =
        counts[i] == 0 ? std::vector<int32_t>()
                       : std::vector<int32_t>{static_cast<int32_t>(counts.size() - 1 - i)};
    EXPECT_EQ(comparison.wrong_digits, wrong) << i;
  }
}

TEST_P(TransductionTextTest, CatalogueEntryHasTheSameParameters) {
  const TaskEntry &asked = *FindTask(GetParam()), &text = *FindTask(GetParam() + "_text");
  EXPECT_EQ(text.kind, TaskKind::kText);
  EXPECT_EQ(text.accuracy_title, "exact match");
  ASSERT_EQ(text.parameters.size(), asked.parameters.size());
  for (size_t i = 0; i < asked.parameters.size(); ++i) {
    EXPECT_EQ(text.parameters[i].name, asked.parameters[i].name);
  }
  EXPECT_THAT(text.documentation, HasSubstr(asked.name));
}

INSTANTIATE_TEST_SUITE_P(Tasks, TransductionTextTest, testing::ValuesIn(Transductions()),
                         [](const auto& info) { return info.param; });

TEST(TransductionTextParametersTest, ReachTheTask) {
  catalogue::Parameters parameters;
  parameters.Set("vocabulary", int64_t{7});
  const auto task = CreateTask("reverse_string_text", parameters).value();
  EXPECT_EQ(dynamic_cast<const TextTask&>(*task).vocabulary(), 7 + 3);
}

TEST(TransductionTextMistakesTest, SymbolAndWhatIsExpectedAreNamed) {
  const auto task = CreateTask("copy_string_text", {}).value();
  const auto& text = dynamic_cast<const TextTask&>(*task);
  EXPECT_EQ(text.Parse("0 1 1").value(), text.Parse(" 0 1  1 =").value());
  const auto message = [&](absl::string_view given) {
    return std::string(text.Parse(given).status().message());
  };
  constexpr char kExpected[] =
      ", expected numbers from 0 to 1 between spaces, then \"=\" or nothing";
  EXPECT_EQ(message("0 2"), std::string("got \"2\" as symbol 2") + kExpected);
  EXPECT_EQ(message("01 x"), std::string("got \"x\" as symbol 2") + kExpected);
  EXPECT_EQ(message("0 = 1"), std::string("got \"1\" as symbol 3") + kExpected);
  EXPECT_EQ(message("="), "the task has no inputs of 0 tokens; a length that it has is 1");
  const auto equations = CreateTask("modular_arithmetic_text", {}).value();
  EXPECT_EQ(std::string(dynamic_cast<const TextTask&>(*equations).Parse("1 2").status().message()),
            "the task has no inputs of 2 tokens; a length that it has is 1");
  EXPECT_EQ(std::string(text.Check(0).message()), "inputs have at least 1 token, not 0");
}

}  // namespace
}  // namespace lengthwise::tasks::transduction_text
