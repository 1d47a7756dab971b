#include "tasks/examples/line.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::tasks::examples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Refusal(absl::string_view text) {
  Line line;
  return std::string(ParseLine(text, line).message());
}

TEST(ExampleLineTest, ReadsListsMaskAndLength) {
  Line line;
  ASSERT_TRUE(
      ParseLine(R"({"input": [3, 1], "target": [1, 3], "mask": [0, 1], "length": 7})", line).ok());
  EXPECT_THAT(line.input.numbers, ElementsAre(3, 1));
  EXPECT_THAT(line.target.numbers, ElementsAre(1, 3));
  EXPECT_EQ(line.input.not_whole, "");
  EXPECT_THAT(line.mask, ElementsAre(0, 1));
  EXPECT_EQ(line.length, 7);
}

TEST(ExampleLineTest, ForgetsTheLineBefore) {
  Line line;
  ASSERT_TRUE(ParseLine(R"({"input": [0.5], "target": [1], "mask": [0], "length": 9})", line).ok());
  ASSERT_TRUE(ParseLine(R"({"target": "19", "input": "12+7="})", line).ok());
  EXPECT_EQ(line.input.text, "12+7=");
  EXPECT_EQ(line.target.text, "19");
  EXPECT_EQ(line.input.not_whole, "");
  EXPECT_THAT(line.input.numbers, IsEmpty());
  EXPECT_THAT(line.mask, IsEmpty());
  EXPECT_EQ(line.length, 0);
}

TEST(ExampleLineTest, FractionsAndHugeIntegersAreNotWhole) {
  Line line;
  ASSERT_TRUE(ParseLine(R"({"input": [2, 1.50, 0.5], "target": [5000000000]})", line).ok());
  EXPECT_EQ(line.input.not_whole, "1.50");
  EXPECT_EQ(line.target.not_whole, "5000000000");
}

TEST(ExampleLineTest, ErrorsNamePlaceAndAcceptedValues) {
  EXPECT_THAT(Refusal(R"({"input": [3, 1], "tar)"), HasSubstr("column 23: not JSON"));
  EXPECT_THAT(Refusal(absl::string_view("{\"input\": [\0", 12)),
              HasSubstr("NUL byte at column 12"));
  EXPECT_THAT(Refusal(R"({"input": "a\u0000", "target": "b"})"), HasSubstr("NUL character"));
  EXPECT_THAT(Refusal(R"({"inputs": [1], "target": [1]})"), HasSubstr("did you mean \"input\"?"));
  EXPECT_THAT(Refusal(R"({"input": [1], "input": [1]})"), HasSubstr("given twice"));
  EXPECT_THAT(Refusal(R"({"input": [1]})"), HasSubstr("has no \"target\""));
  EXPECT_THAT(Refusal(R"({"input": [], "target": [1]})"), HasSubstr("input is empty"));
  EXPECT_THAT(Refusal(R"({"input": "a", "target": [1]})"), HasSubstr("both be text"));
  EXPECT_THAT(Refusal(R"({"input": [[1]], "target": [1]})"), HasSubstr("input: got a list"));
  EXPECT_THAT(Refusal(R"({"input": ["a"], "target": [1]})"),
              HasSubstr("input: got \"a\" in the list, expected numbers; write words as one text"));
  EXPECT_THAT(Refusal(R"({"input": [1], "target": [1], "mask": [2]})"),
              HasSubstr("list of 0 and 1"));
  EXPECT_THAT(Refusal(R"({"input": [1], "target": [1], "length": 0})"),
              HasSubstr("an integer from 1 to 100000"));
  EXPECT_THAT(Refusal(R"({"input": [1], "target": [1], "positions": [1, -1]})"),
              HasSubstr("positions: got -1, expected a list of integers from 0 to 1048575"));
  EXPECT_THAT(Refusal(R"({"input": [1], "target": [1], "positions": [1, 1048576]})"),
              HasSubstr("positions: got 1048576, expected"));
  EXPECT_THAT(Refusal(R"({"input": [1], "target": [1], "positions": 3})"),
              HasSubstr("positions: got 3, expected a list"));
  EXPECT_THAT(Refusal(R"([1])"), HasSubstr("expected an object such as"));
  EXPECT_THAT(Refusal(R"({"input": [1e999], "target": [1]})"),
              HasSubstr("column 16: the number 1e999 is too large"));
  EXPECT_THAT(Refusal(R"({"input": [1], "target": [1]} {})"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("{\"input\": \"\xff\", \"target\": \"a\"}"), HasSubstr("not JSON"));
}

// A hundred thousand brackets must not exhaust the stack.
TEST(ExampleLineTest, DeepNestingIsRefusedAtOnce) {
  EXPECT_THAT(Refusal("{\"input\": " + std::string(100'000, '[')), HasSubstr("got a list"));
}

}  // namespace
}  // namespace lengthwise::tasks::examples
