#include "specification/integer_ranges.h"

#include <limits>

#include "gtest/gtest.h"

namespace lengthwise::specification {
namespace {

TEST(ParseIntegerTest, AcceptsAll64BitValues) {
  EXPECT_EQ(ParseInteger("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseInteger("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseInteger("18446744073709551616"), std::nullopt);
}

TEST(ParseIntegerTest, AcceptsOtherSpellingsOfIntegers) {
  EXPECT_EQ(ParseInteger("2e6"), 2'000'000);
  EXPECT_EQ(ParseInteger("3.0"), 3);
  EXPECT_EQ(ParseInteger("1e16"), std::nullopt) << "above 2^53 a double is no integer";
}

TEST(ParseIntegerTest, RefusesEverythingElse) {
  for (const char* text : {"", "x", "1.5", "nan", "inf", "1,000", "1_000", "1 2", "0..3"}) {
    EXPECT_EQ(ParseInteger(text), std::nullopt) << text;
  }
}

TEST(ParseRangeTest, IncludesBothEnds) {
  const auto range = ParseRange("5..60 step 5");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5);
  EXPECT_EQ(range->last, 60);
  EXPECT_EQ(range->step, 5);
  EXPECT_EQ(range->size(), 12);
  EXPECT_EQ(ParseRange("-3 .. 3")->size(), 7);
  EXPECT_EQ(ParseRange("4..4")->size(), 1);
  EXPECT_EQ(ParseRange("0..9 step 4")->size(), 3) << "0, 4, 8";
}

TEST(ParseRangeTest, CountsWithoutOverflow) {
  EXPECT_EQ(ParseRange("-9223372036854775808..18446744073709551615")->size(),
            absl::int128(std::numeric_limits<uint64_t>::max()) + (absl::int128(1) << 63) + 1);
}

TEST(ParseRangeTest, RefusesMalformedRanges) {
  for (const char* text : {"", "..", "1..", "..1", "1...3", "9..0", "1..3 step 0", "1..3 step -1",
                           "1..3 step", "1..3 by 2", "a..b", "1..2..3"}) {
    EXPECT_FALSE(ParseRange(text)) << text;
  }
}

}  // namespace
}  // namespace lengthwise::specification
