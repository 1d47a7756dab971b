#include "worker/connection/startup.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

TEST(WorkerId, NamesHostDeviceAndProcess) {
  EXPECT_EQ(MakeWorkerId("n07", "cuda:0", 4711), "n07-cuda0-4711");
  EXPECT_EQ(MakeWorkerId("Node_3.cluster.example", "cpu", 1), "node-3-cpu-1");
  EXPECT_EQ(MakeWorkerId("", "cpu", 1), "worker-cpu-1");
}

TEST(WorkerId, IsAlwaysValid) {
  for (const std::string& host :
       {std::string(200, 'x'), std::string("\xc3\xa4 b"), std::string(".")}) {
    const std::string id = MakeWorkerId(host, "cuda:7 (strange, and far too long a name)", 4194304);
    EXPECT_TRUE(ValidateWorkerId(id).ok()) << id;
    EXPECT_TRUE(id.ends_with("-4194304")) << id;
  }
}

TEST(WorkerId, RejectsWhatTheServerRejects) {
  EXPECT_TRUE(ValidateWorkerId(std::string(60, 'a')).ok());
  EXPECT_FALSE(ValidateWorkerId(std::string(61, 'a')).ok());
  EXPECT_FALSE(ValidateWorkerId("").ok());
  EXPECT_EQ(ValidateWorkerId("Node 1").message(),
            "worker id \"Node 1\": must have 1 to 60 of the characters a-z, 0-9 and -");
}

TEST(LifetimeTest, FlagOverridesSlurmsEndTime) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(Lifetime("90m", "1000600", now), absl::Minutes(90));
  EXPECT_EQ(Lifetime("", "1000600", now), absl::Minutes(10));
  EXPECT_EQ(Lifetime("", "999000", now), absl::ZeroDuration());
}

TEST(LifetimeTest, IsInfiniteByDefault) {
  EXPECT_EQ(Lifetime("", nullptr), absl::InfiniteDuration());
  EXPECT_EQ(Lifetime("", "NONE"), absl::InfiniteDuration());
  EXPECT_EQ(Lifetime("", "0"), absl::InfiniteDuration());
}

TEST(LifetimeTest, DrainReserveIsAtMostATenth) {
  EXPECT_EQ(DrainReserve(absl::Hours(24), absl::Minutes(5)), absl::Minutes(5));
  EXPECT_EQ(DrainReserve(absl::Minutes(10), absl::Minutes(5)), absl::Minutes(1));
  EXPECT_EQ(DrainReserve(absl::InfiniteDuration(), absl::Minutes(5)), absl::ZeroDuration());
}

}  // namespace
}  // namespace lengthwise::worker
