#include "client/commands/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NumberListTest, TakesNumbersAndRangesInTheirOrder) {
  google::protobuf::RepeatedField<int32_t> numbers;
  ASSERT_TRUE(ReadNumbers("--lengths", "7, 1..3,10..20 step 5", numbers).ok());
  EXPECT_THAT(numbers, ElementsAre(7, 1, 2, 3, 10, 15, 20));
  ASSERT_TRUE(ReadNumbers("--lengths", "", numbers).ok());
  EXPECT_EQ(numbers.size(), 7);
}

TEST(NumberListTest, TakesTheLargestSeed) {
  google::protobuf::RepeatedField<uint64_t> numbers;
  ASSERT_TRUE(ReadNumbers("--seeds", "18446744073709551615", numbers).ok());
  EXPECT_EQ(numbers.Get(0), 18446744073709551615u);
}

TEST(NumberListTest, TakesRealNumbers) {
  google::protobuf::RepeatedField<double> numbers;
  ASSERT_TRUE(ReadNumbers("--input", "1.75, -0.25,0,1e3", numbers).ok());
  EXPECT_THAT(numbers, ElementsAre(1.75, -0.25, 0, 1000));
  for (const char* text : {"many", "1,,2", "1..3", "nan", "inf"}) {
    EXPECT_THAT(std::string(ReadNumbers("--input", text, numbers).message()),
                HasSubstr("expected finite numbers"))
        << text;
  }
  EXPECT_EQ(numbers.size(), 4);
}

TEST(NumberListTest, ExplainsMistakes) {
  google::protobuf::RepeatedField<int32_t> numbers;
  for (const char* text : {"many", "1,,2", "9..0", "1..", "1.5"}) {
    EXPECT_THAT(std::string(ReadNumbers("--lengths", text, numbers).message()),
                HasSubstr("--lengths: got \""))
        << text;
  }
  EXPECT_THAT(std::string(ReadNumbers("--lengths", "-1", numbers).message()),
              HasSubstr("expected numbers from 0 to 2147483647"));
  EXPECT_THAT(std::string(ReadNumbers("--lengths", "3000000000", numbers).message()),
              HasSubstr("expected numbers from 0 to 2147483647"));
  EXPECT_THAT(std::string(ReadNumbers("--lengths", "1..2000000", numbers).message()),
              HasSubstr("more than 1000000 numbers"));
  EXPECT_TRUE(numbers.empty());
}

}  // namespace
}  // namespace lengthwise::client
