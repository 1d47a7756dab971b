// Database rows whose bytes are no longer a message: the error names the file and the damage, an
// incomplete message is never returned, and everything else keeps working.
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

class CoreDamageTest : public testing::Test {
 protected:
  CoreDamageTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
    experiment_ = coordinator_.Create("sort", 1, 2);
  }

  std::string Database() const { return coordinator_.data_dir() + "/lengthwise.db"; }

  // Runs `sql` between two servers.
  void Damage(const std::string& sql) {
    coordinator_.Close();
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(Database().c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    EXPECT_GT(sqlite3_changes(database), 0);
    sqlite3_close(database);
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  void ExpectNamed(const absl::Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(Database()), HasSubstr(what)));
  }
  absl::Status List() {
    v1::ListTrialsRequest request;
    request.set_parent(experiment_);
    return coordinator_->reads().ListTrials(request).status();
  }

  TestCoordinator coordinator_;
  std::string experiment_;
};

TEST_F(CoreDamageTest, SpecificationOfAnExperimentIsNamed) {
  const std::string other = coordinator_.Create("other", 1, 1);
  Damage("UPDATE experiments SET specification = x'ff' WHERE id = 'sort-1'");
  const std::string what = "the specification of " + experiment_;
  ExpectNamed(coordinator_->reads().GetExperiment(experiment_).status(), what);
  ExpectNamed(coordinator_->reads().ListExperiments({}).status(), what);
  ExpectNamed(coordinator_.Extend(experiment_, {7}).status(), what);
  // An answer that cannot be built changes nothing.
  ExpectNamed(coordinator_.Cancel(experiment_).status(), what);
  EXPECT_EQ(coordinator_->GetStatistics().trials.queued(), 3);
  // Its trials have specifications of their own.
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {1}));
  }
  ExpectNamed(coordinator_.Retry(experiment_, {v1::FAILED}).status(), what);
  EXPECT_TRUE(coordinator_->reads().GetExperiment(other).ok());
  EXPECT_EQ(coordinator_.Delete(experiment_), absl::OkStatus());
  EXPECT_THAT(coordinator_->reads().ListExperiments({})->experiments(), SizeIs(1));
}

// A new server in its place would say that there are no experiments.
TEST_F(CoreDamageTest, LostDatabaseIsNotReplacedByAnEmptyOne) {
  coordinator_.Close();
  std::filesystem::resize_file(Database(), 0);
  const absl::Status empty = coordinator_.Open();
  EXPECT_EQ(empty.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(empty.message()),
              AllOf(HasSubstr(Database() + " is empty"), HasSubstr("restore a backup")));
  EXPECT_EQ(std::filesystem::file_size(Database()), 0u);
  std::filesystem::remove(Database());
  EXPECT_THAT(std::string(coordinator_.Open().message()), HasSubstr(Database() + " is missing"));
  EXPECT_FALSE(std::filesystem::exists(Database()));
}

// The first start may have ended before it wrote the database.
TEST(CoreStartTest, UnfinishedFirstStartIsRepeated) {
  TestCoordinator coordinator;
  std::filesystem::create_directories(coordinator.data_dir());
  for (const char* file : {"/lengthwise.db", "/LOCK", "/tokens.lock"}) {
    std::ofstream(coordinator.data_dir() + file).flush();
  }
  EXPECT_EQ(coordinator.Open(), absl::OkStatus());
}

TEST_F(CoreDamageTest, SharedPartOfASpecificationIsMissed) {
  Damage("DELETE FROM shared");
  const std::string trial = experiment_ + "/trials/lr0-seed1";
  ExpectNamed(coordinator_->reads().GetTrial(trial).status(), "the specification of " + trial);
}

TEST_F(CoreDamageTest, SpecificationOfATrialIsNamed) {
  const std::string other = coordinator_.Create("other", 1, 1);
  const v1::Lease running = coordinator_.Acquire("w");
  Damage("UPDATE packs SET specification = x'0a' WHERE key = 1");
  const std::string trial = experiment_ + "/trials/lr0-seed1";
  ExpectNamed(coordinator_->reads().GetTrial(trial).status(), "the specification of " + trial);
  ExpectNamed(coordinator_.CancelTrial(trial).status(), "the specification of " + trial);
  ExpectNamed(List(), "the specification of ");
  ExpectNamed(coordinator_.Summarize(experiment_).status(), "the specification of pack ");
  // It cannot run, says so, and does not keep others from running.
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  EXPECT_EQ(lease.trials(0).trial(), other + "/trials/lr0-seed0");
  const std::vector<v1::Event> history = coordinator_.History(trial);
  ASSERT_FALSE(history.empty());
  EXPECT_EQ(history.back().state_change().to(), v1::FAILED);
  EXPECT_THAT(history.back().state_change().reason(), HasSubstr(Database()));
  // The running trial continues.
  EXPECT_EQ(coordinator_.Send(running, {PointsEvent(running, 0, 1, 1)})->acknowledged_sequence(),
            1);
}

TEST_F(CoreDamageTest, UnequalEvaluationColumnsAreNamed) {
  const v1::Lease lease = coordinator_.Acquire("w");
  const v1::Event event = AccuraciesEvent(lease, 0, 1, 5, {0.5, 0.25});
  coordinator_.Send(lease, {event}).IgnoreError();
  v1::Event damaged;
  *damaged.mutable_length_accuracies() = event.length_accuracies();
  damaged.mutable_length_accuracies()->mutable_accuracies()->RemoveLast();
  Damage(absl::StrCat("UPDATE events SET payload = x'",
                      absl::BytesToHexString(damaged.SerializeAsString()),
                      "' WHERE kind = ", static_cast<int>(v1::Event::kLengthAccuracies)));
  ExpectNamed(coordinator_->event_log().ReadEvents(experiment_, 0, 100).status(),
              lease.trials(0).trial());
}

TEST_F(CoreDamageTest, DamagedEventIsNamed) {
  const v1::Lease lease = coordinator_.Acquire("w");
  const std::string trial = lease.trials(0).trial();
  coordinator_.Send(lease, {PointsEvent(lease, 0, 1, 5), PointsEvent(lease, 0, 2, 6)})
      .IgnoreError();
  const int64_t position = coordinator_.History(trial).back().position();
  // Truncated bytes may parse, into a message without its fact.
  for (const char* bytes : {"x'ff'", "x''"}) {
    Damage(absl::StrCat("UPDATE events SET payload = ", bytes, " WHERE position = ", position));
    const std::string what = absl::StrCat("event ", position, " of ", trial);
    ExpectNamed(coordinator_->event_log().ReadEvents(trial, 0, 100).status(), what);
    ExpectNamed(coordinator_->event_log().ReadEvents(experiment_, 0, 100).status(), what);
    int taken = 0;
    ExpectNamed(coordinator_->event_log().ForEachEvent(experiment_, v1::Event::kTrainingPoints,
                                                       [&](const v1::Event&) { ++taken; }),
                what);
    EXPECT_EQ(taken, 1);
  }
}

TEST_F(CoreDamageTest, DamagedCheckpointEventFallsBack) {
  const v1::Lease lease = coordinator_.Acquire("w");
  const std::string trial = lease.trials(0).trial();
  for (const int64_t step : {10, 20}) {
    const std::string bytes = absl::StrCat("weights of step ", step);
    ASSERT_EQ(coordinator_.Upload(lease, 0, step, bytes), absl::OkStatus());
    coordinator_.Send(lease, {CheckpointEvent(lease, 0, step / 10, step, bytes)}).IgnoreError();
  }
  const int64_t position = coordinator_.History(trial).back().position();
  coordinator_.Release("w", lease);
  Damage(absl::StrCat("UPDATE events SET payload = x'ff' WHERE position = ", position));
  ExpectNamed(coordinator_->artifacts().OpenModel(trial).status(),
              absl::StrCat("event ", position));
  int64_t resumed = -1;
  for (v1::Lease next = coordinator_.Acquire("w"); next.trials_size() > 0;
       next = coordinator_.Acquire("w")) {
    if (next.trials(0).trial() == trial) resumed = next.trials(0).checkpoint_step();
  }
  EXPECT_EQ(resumed, 10);
}

TEST_F(CoreDamageTest, DamagedCheckpointEventStopsABackup) {
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(coordinator_.Upload(lease, 0, 10, "weights"), absl::OkStatus());
  coordinator_.Send(lease, {CheckpointEvent(lease, 0, 1, 10, "weights")}).IgnoreError();
  ASSERT_EQ(coordinator_.BackUp("before"), absl::OkStatus());
  const int64_t position = coordinator_.History(lease.trials(0).trial()).back().position();
  Damage(absl::StrCat("UPDATE events SET payload = x'ff' WHERE position = ", position));
  const absl::Status status = coordinator_.BackUp("after");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("an event of ", lease.trials(0).trial(), " is damaged")));
  EXPECT_EQ(coordinator_->backups().GetStorage()->backups_size(), 1) << "only the first";
}

TEST_F(CoreDamageTest, DamagedSpecificationStopsABackup) {
  Damage("UPDATE experiments SET specification = x'ff' WHERE id = 'sort-1'");
  const absl::Status status = coordinator_.BackUp("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the specification of experiments/sort-1 is damaged"));
}

TEST_F(CoreDamageTest, DamagedOutcomeIsNamed) {
  const v1::Lease lease = coordinator_.Acquire("w");
  const std::string trial = lease.trials(0).trial();
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {1}));
  Damage("UPDATE trials SET outcome = x'ff' WHERE state = 3");
  ExpectNamed(coordinator_->reads().GetTrial(trial).status(), "the outcome of " + trial);
  ExpectNamed(List(), "the outcome of " + trial);
  ExpectNamed(coordinator_.Summarize(experiment_).status(), "the outcome of " + trial);
}

}  // namespace
}  // namespace lengthwise::server
