#include "server/coordination/fleet.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

absl::Status Register(Fleet& fleet, const std::string& principal, const std::string& worker,
                      absl::Duration time) {
  v1::WorkerDescription description;
  description.set_worker_id(worker);
  return fleet.Register(description, principal, kStart + time, kStart + time);
}

TEST(FleetTest, PrincipalsHaveLimitedWorkers) {
  Fleet fleet(2);
  const absl::Duration later = absl::Minutes(30);
  EXPECT_TRUE(Register(fleet, "ada", "a", absl::ZeroDuration()).ok());
  EXPECT_TRUE(Register(fleet, "ada", "b", later).ok());
  EXPECT_EQ(Register(fleet, "ada", "c", later),
            absl::ResourceExhaustedError(
                "ada has registered 2 workers within an hour; accepted: at most 2"));
  EXPECT_TRUE(Register(fleet, "ada", "b", later).ok()) << "it is known";
  EXPECT_TRUE(Register(fleet, "bob", "c", later).ok());
  EXPECT_TRUE(Register(fleet, "ada", "c", absl::Minutes(61)).ok()) << "instead of a";
  EXPECT_FALSE(Register(fleet, "ada", "d", absl::Minutes(61)).ok());
}

// Of several principals, the one that calls for the worker counts.
TEST(FleetTest, WorkerThatChangesHandsLeavesRoom) {
  Fleet fleet(1);
  EXPECT_TRUE(Register(fleet, "ada", "a", absl::ZeroDuration()).ok());
  EXPECT_FALSE(Register(fleet, "ada", "b", absl::ZeroDuration()).ok());
  EXPECT_TRUE(Register(fleet, "bob", "a", absl::ZeroDuration()).ok());
  EXPECT_TRUE(Register(fleet, "ada", "b", absl::ZeroDuration()).ok());
  EXPECT_FALSE(Register(fleet, "bob", "c", absl::ZeroDuration()).ok());
}

TEST(FleetTest, StoppedWorkersLeaveRoomAfterTenMinutes) {
  Fleet fleet(1);
  EXPECT_TRUE(Register(fleet, "ada", "a", absl::ZeroDuration()).ok());
  fleet.Stop("a", "", 1, "");
  EXPECT_FALSE(Register(fleet, "ada", "b", absl::Minutes(9)).ok());
  EXPECT_TRUE(Register(fleet, "ada", "b", absl::Minutes(11)).ok());
}

}  // namespace
}  // namespace lengthwise::server
