#include "server/scheduling/fair_queue.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;

class FairQueueTest : public testing::Test {
 protected:
  // Inserts a pack of one trial.
  void Insert(TrialKey trial, const std::string& owner, int32_t priority = 0) {
    queue_.Insert({.pack = trial}, priority, owner, "of-" + owner, trial);
  }

  const PackId* NextOf(const std::string& experiment) const {
    return queue_.Next(experiment, [](const PackId&) { return true; });
  }

  // Leases the next pack as a scheduler does. Returns its first trial.
  TrialKey Lease() {
    const PackId id = *NextOf("");
    const std::string owner = queue_.next_owner();
    const FairQueue::Trials trials = queue_.trials_of(id);
    for (const TrialKey trial : trials) {
      queue_.Remove(id, trial);
      queue_.AddRunning(owner, 1);
    }
    queue_.Serve(owner, ++leases_);
    EXPECT_EQ(queue_.CheckInvariants(), absl::OkStatus());
    return *trials.begin();
  }

  std::vector<TrialKey> LeaseAll() {
    std::vector<TrialKey> order;
    while (!queue_.empty()) order.push_back(Lease());
    return order;
  }

  FairQueue queue_;
  int64_t leases_ = 0;
};

TEST_F(FairQueueTest, OwnersPacksGoInTheOrderOfSubmission) {
  for (const TrialKey trial : {3, 1, 2}) Insert(trial, "ada");
  EXPECT_THAT(LeaseAll(), ElementsAre(1, 2, 3));
}

TEST_F(FairQueueTest, PriorityGoesBeforeShare) {
  Insert(1, "ada", 0);
  Insert(2, "bob", 1);
  Insert(3, "bob", 1);
  queue_.AddRunning("bob", 100);
  EXPECT_EQ(queue_.PacksAbove(0), 2);
  EXPECT_EQ(queue_.PacksAbove(1), 0);
  EXPECT_THAT(LeaseAll(), ElementsAre(2, 3, 1));
}

TEST_F(FairQueueTest, OwnerWithTheFewestRunningModelsGoesFirst) {
  for (TrialKey trial = 1; trial <= 4; ++trial) Insert(trial, "ada");
  for (TrialKey trial = 5; trial <= 6; ++trial) Insert(trial, "bob");
  queue_.AddRunning("ada", 1);
  // ada, bob: (1, 0), (1, 1), then the owner served longer ago, and so on.
  EXPECT_EQ(Lease(), 5);
  EXPECT_EQ(Lease(), 1);
  EXPECT_EQ(Lease(), 6);
  EXPECT_THAT(LeaseAll(), ElementsAre(2, 3, 4));
  EXPECT_EQ(queue_.Running("ada"), 5);
}

TEST_F(FairQueueTest, OnOneWorkerOwnersTakeTurns) {
  for (TrialKey trial = 1; trial <= 3; ++trial) Insert(trial, "ada");
  for (TrialKey trial = 4; trial <= 6; ++trial) Insert(trial, "bob");
  std::vector<TrialKey> order;
  while (!queue_.empty()) {
    const std::string owner = queue_.next_owner();
    order.push_back(Lease());
    queue_.AddRunning(owner, -1);
  }
  EXPECT_THAT(order, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(FairQueueTest, SingleSubmissionsDoNotStarveAGrid) {
  for (TrialKey trial = 1; trial <= 3; ++trial) Insert(trial, "ada");
  std::vector<TrialKey> order;
  for (TrialKey trial = 10; trial < 14; ++trial) {
    if (!queue_.Contains({.pack = trial - 1})) Insert(trial, "bob");
    const std::string owner = queue_.next_owner();
    order.push_back(Lease());
    queue_.AddRunning(owner, -1);
  }
  EXPECT_THAT(order, testing::Contains(1));
  EXPECT_THAT(order, testing::Contains(2));
}

TEST_F(FairQueueTest, PackStandsAtItsFirstTrial) {
  const PackId pack = {.pack = 7};
  queue_.Insert(pack, 0, "ada", "e", 5);
  Insert(4, "ada");
  EXPECT_EQ(queue_.PacksBefore(pack, 100), 1);
  queue_.Insert(pack, 0, "ada", "e", 3);
  EXPECT_EQ(queue_.PacksBefore(pack, 100), 0);
  EXPECT_THAT(queue_.trials_of(*NextOf("")), ElementsAre(3, 5));
  queue_.Remove(pack, 3);
  EXPECT_THAT(queue_.trials_of(*NextOf("")), ElementsAre(4));
  EXPECT_EQ(queue_.CheckInvariants(), absl::OkStatus());
}

TEST_F(FairQueueTest, ExperimentHasItsOwnOrder) {
  EXPECT_EQ(NextOf("mine"), nullptr);
  queue_.Insert({.pack = 1}, 5, "ada", "other", 1);
  queue_.Insert({.pack = 2}, 0, "ada", "mine", 4);
  queue_.Insert({.pack = 3}, 0, "ada", "mine", 3);
  EXPECT_EQ(NextOf("mine")->pack, 3);
  queue_.Insert({.pack = 2}, 0, "ada", "mine", 2);
  EXPECT_EQ(NextOf("mine")->pack, 2) << "its first trial is the oldest now";
  EXPECT_THAT(queue_.trials_of({.pack = 2}), ElementsAre(2, 4));
  EXPECT_EQ(queue_.CheckInvariants(), absl::OkStatus());
  queue_.Remove({.pack = 2}, 2);
  EXPECT_EQ(NextOf("mine")->pack, 3);
  queue_.Remove({.pack = 3}, 3);
  queue_.Remove({.pack = 2}, 4);
  EXPECT_EQ(NextOf("mine"), nullptr);
  EXPECT_EQ(NextOf("")->pack, 1);
  EXPECT_EQ(queue_.CheckInvariants(), absl::OkStatus());
}

}  // namespace
}  // namespace lengthwise::server
