#include "server/coordination/fleet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

// 20,000 workers may describe themselves with 4 KiB each, and any viewer may ask for the list.
TEST(FleetTest, LongListDescribesNotAllWorkers) {
  Fleet fleet;
  v1::WorkerDescription description;
  description.mutable_provenance()->set_host(std::string(4000, 'x'));
  for (int i = 0; i < 5000; ++i) {
    description.set_worker_id(absl::StrCat("worker-", i));
    EXPECT_TRUE(fleet.Register(description, "ada", kStart, kStart).ok());
  }
  const std::vector<v1::Worker> workers = fleet.List(kStart);
  ASSERT_EQ(workers.size(), 5000u);
  size_t bytes = 0;
  for (const v1::Worker& worker : workers) bytes += worker.provenance().ByteSizeLong();
  EXPECT_GT(bytes, Fleet::kMostListBytes - 400'000);
  EXPECT_LE(bytes, Fleet::kMostListBytes);
  EXPECT_FALSE(workers.back().has_provenance());
  EXPECT_FALSE(workers.back().worker_id().empty());
}

}  // namespace
}  // namespace lengthwise::server
