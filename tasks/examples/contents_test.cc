#include "tasks/examples/contents.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::tasks::examples {
namespace {

Contents Some() {
  return {.form = Form::kWords,
          .input_symbols = 7,
          .target_symbols = 3,
          .one_size = false,
          .train_bytes = 12,
          .test_bytes = 5,
          .training = {.examples = 31,
                       .lengths = {{1, 10}, {2, 10}, {3, 10}, {9, 1}},
                       .longest = 12,
                       .longest_by_length = {{1, 4}, {2, 4}, {3, 6}, {9, 12}},
                       .shortest_by_length = {{1, 2}, {2, 3}, {3, 6}, {9, 12}}},
          .test = {.examples = 4,
                   .lengths = {{40, 4}},
                   .longest = 44,
                   .longest_by_length = {{40, 44}},
                   .shortest_by_length = {{40, 44}}}};
}

TEST(ContentsTest, NameTheLargestPosition) {
  Contents contents = Some();
  contents.largest_position = 12;
  contents.largest_position_line = "train.jsonl:3";
  const auto parsed = ParseContents(ToText(contents));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, contents);
  EXPECT_FALSE(Agrees(*parsed, Some()));
  contents.largest_position_line = "another name";
  EXPECT_TRUE(Agrees(*parsed, contents));
}

TEST(ContentsTest, TextReadsBackTheSame) {
  const auto parsed = ParseContents(ToText(Some()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, Some());
  EXPECT_THAT(ToText(Some()), ::testing::HasSubstr("\"1-3x10,9x1\""));
}

// The format of release 0.2.0.
TEST(ContentsTest, ContentsWithoutTokensByLengthAgree) {
  std::string text = ToText(Some());
  for (const std::string added :
       {R"(,"longest_by_length":"1-2x4,3x6,9x12","shortest_by_length":"1x2,2x3,3x6,9x12")",
        R"(,"longest_by_length":"40x44")", R"(,"one_size":false)"}) {
    ASSERT_NE(text.find(added), std::string::npos) << text;
    text.erase(text.find(added), added.size());
  }
  const auto parsed = ParseContents(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->training.longest_by_length.empty());
  EXPECT_TRUE(Agrees(*parsed, Some()));
  Contents others = Some();
  others.training.longest = 13;
  EXPECT_FALSE(Agrees(*parsed, others));
  others = Some();
  others.test.longest_by_length[40] = 43;
  EXPECT_FALSE(Agrees(others, Some()));
  others = Some();
  others.one_size = true;
  EXPECT_FALSE(Agrees(others, Some()));
}

// Such contents tell a worker to read the files as that release did.
TEST(ContentsTest, ContentsWithoutReadingAreOfAnOlderRelease) {
  std::string text = ToText(Some());
  const std::string added = R"("reading":1,)";
  ASSERT_NE(text.find(added), std::string::npos) << text;
  text.erase(text.find(added), added.size());
  const auto parsed = ParseContents(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->reading, 0);
  EXPECT_TRUE(Agrees(*parsed, Some()));
}

TEST(ContentsTest, ForeignTextIsRefused) {
  for (const std::string text :
       {"", "{}", "[]", "null", "{\"form\": 3}", "{\"form\":\"symbols\",\"input_symbols\":-1}"}) {
    EXPECT_FALSE(ParseContents(text).ok()) << text;
  }
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"1-3x10", "1-3"},
                                                        {"1-3x10", "1-300000x10"},
                                                        {"1-3x10", "3-1x10"},
                                                        {"1-3x10", "1-9x10"},
                                                        {":7", ":70000"},
                                                        {"1-2x4", "1-2x1"},
                                                        {"3x6,9x12", "3x6"},
                                                        {"1x2,2x3", "1x2,4x3"},
                                                        {"words", "waltz"},
                                                        {"\"one_size\":false", "\"one_size\":2"}}) {
    std::string text = ToText(Some());
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(ParseContents(text).ok()) << text;
  }
}

TEST(ContentsTest, LengthsAreShownAsRanges) {
  EXPECT_EQ(ShowLengths(Some().training.lengths), "1..3, 9");
}

}  // namespace
}  // namespace lengthwise::tasks::examples
