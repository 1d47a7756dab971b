#include "server/coordination/length_buckets.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(LengthBuckets, FewLengthsHaveOneEach) {
  const LengthBuckets buckets(10, 20);
  EXPECT_EQ(buckets.Label(1), "01");
  EXPECT_EQ(buckets.Label(20), "20");
}

TEST(LengthBuckets, NoBucketMixesSeenAndUnseenLengths) {
  // 500 lengths, 40 of them seen: a width of 25 would be enough, but 40 divides.
  const LengthBuckets buckets(40, 500);
  EXPECT_EQ(buckets.Label(40), "001-040");
  EXPECT_EQ(buckets.Label(41), "041-080");
  EXPECT_EQ(buckets.Label(500), "481-520");
}

TEST(LengthBuckets, WidthsAreRoundIfNoneDivides) {
  EXPECT_EQ(LengthBuckets(20, 500).width(), 50);
  EXPECT_EQ(LengthBuckets(0, 500).width(), 50);
  EXPECT_EQ(LengthBuckets(0, 100'000).Label(100'000), "095001-100000");
}

TEST(LengthBuckets, AreAtMostTwentyAndSortAsTheLengthsDo) {
  for (const int32_t longest : {1, 7, 19, 20, 21, 33, 60, 99, 100, 101, 500, 1023, 99'999}) {
    for (const int32_t seen : {0, 1, 5, 20, 39, 40, 41, 500}) {
      const LengthBuckets buckets(seen, longest);
      std::set<std::string> labels;
      std::string last;
      for (int32_t length = 1; length <= longest; ++length) {
        const std::string label = buckets.Label(length);
        EXPECT_LE(last, label) << longest << " " << seen << " " << length;
        last = label;
        labels.insert(label);
      }
      EXPECT_LE(labels.size(), 20u) << longest << " " << seen;
      EXPECT_EQ(buckets.Label(longest + 7), last);
      EXPECT_EQ(buckets.Label(0), *labels.begin());
    }
  }
}

}  // namespace
}  // namespace lengthwise::server
