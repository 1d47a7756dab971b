#include "server/coordination/leases.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/messages.h"

namespace lengthwise::server {
namespace {

TEST(LeaseIdsTest, IdFitsOnlyItsTokenAndPrincipal) {
  const LeaseIds ids({.key = "key"});
  const std::string id = ids.Make(17, "ada");
  EXPECT_THAT(id, testing::MatchesRegex("lease-17-[0-9a-f]{32}"));
  EXPECT_TRUE(ids.Fits(id, 17, "ada"));
  EXPECT_FALSE(ids.Fits(id, 17, "grace"));
  EXPECT_FALSE(ids.Fits(id, 18, "ada"));
  EXPECT_FALSE(ids.Fits("lease-17", 17, "ada"));
  EXPECT_FALSE(ids.Fits("", 17, "ada"));
  EXPECT_FALSE(ids.Fits("lease-0", 0, "ada"));
}

TEST(LeaseIdsTest, AnotherKeyMakesOtherIds) {
  EXPECT_FALSE(LeaseIds({.key = "one"}).Fits(LeaseIds({.key = "two"}).Make(1, "ada"), 1, "ada"));
  EXPECT_TRUE(LeaseIds({.key = "one"}).Fits(LeaseIds({.key = "one"}).Make(1, "ada"), 1, "ada"));
}

TEST(MostInLeaseTest, LeaseFitsAMessage) {
  EXPECT_GT(MostInLease(500), 1000);
  // 100,000 lengths.
  EXPECT_LE(MostInLease(285'000) * 285'000, 8 << 20);
  EXPECT_GE(MostInLease(285'000), 28);
  EXPECT_EQ(MostInLease(int64_t{1} << 40), 1);
}

TEST(LeaseIdsTest, LeasesOfAnOlderProgramKeepTheirIds) {
  const LeaseIds ids({.key = "key", .first_token = 18});
  EXPECT_TRUE(ids.Fits("lease-17", 17, "ada"));
  EXPECT_FALSE(ids.Fits("lease-18", 18, "ada"));
  EXPECT_FALSE(ids.Fits("lease-17", 16, "ada"));
}

}  // namespace
}  // namespace lengthwise::server
