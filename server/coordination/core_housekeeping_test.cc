// Retention of checkpoints, and disk use.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/event_checks.h"
#include "server/coordination/testing/housekeeping_fixture.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_storage.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

TEST_F(CoreHousekeepingTest, KeepsTwoCheckpointsOfARunningTrial) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoreHousekeepingTest, SucceededTrialKeepsItsModel) {
  const std::string experiment = Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_THAT(Artifacts(), ElementsAre("checkpoint 3"));
  v1::EvaluateTrialRequest evaluate;
  evaluate.set_trial(experiment + "/trials/lr0-seed0");
  EXPECT_TRUE(coordinator_.Evaluate(evaluate).ok());
}

TEST_F(CoreHousekeepingTest, FailedTrialKeepsCheckpointsForARetry) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoreHousekeepingTest, AllKeepsThePreviousCheckpoint) {
  Create("all");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoreHousekeepingTest, KeepNothingDeletesCheckpointsAtTheEnd) {
  const std::string experiment = Create("nothing", 2);
  for (const auto kind : {v1::Outcome::COMPLETED, v1::Outcome::FAILED_PERMANENTLY}) {
    const v1::Lease lease = coordinator_.Acquire("w");
    Train(lease);
    EXPECT_THAT(Artifacts(), SizeIs(2)) << "while it runs";
    End(lease, kind);
    EXPECT_THAT(Artifacts(), IsEmpty());
    EXPECT_EQ(coordinator_->reads().GetTrial(lease.trials(0).trial())->checkpoint_step(), 0);
  }
  v1::EvaluateTrialRequest evaluate;
  evaluate.set_trial(experiment + "/trials/lr0-seed0");
  const absl::Status status = coordinator_.Evaluate(evaluate).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stored no model"));
}

TEST_F(CoreHousekeepingTest, DeletingFreesTheMeasuredDiskUse) {
  const std::string experiment = Create("weights");
  v1::DiskUse use = coordinator_->reads().GetExperiment(experiment)->disk_use();
  EXPECT_EQ(use.artifacts(), 0);
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  for (int64_t sequence = 4; sequence < 20; ++sequence) {
    coordinator_.Send(lease, {PointsEvent(lease, 0, sequence, 30 + sequence)}).IgnoreError();
    coordinator_->sweeper().Flush();
    use = coordinator_->reads().GetExperiment(experiment)->disk_use();
    EXPECT_EQ(use.events(), static_cast<int64_t>(coordinator_.History(experiment).size()));
  }
  EXPECT_EQ(use.artifacts(), 2);
  EXPECT_EQ(use.artifact_bytes(), 2 * static_cast<int64_t>(std::string("checkpoint 2").size()));
  EXPECT_GT(use.event_bytes(), 16 * 10);
  // The next attempt resumes from step 30 and drops the points after it.
  coordinator_.Release("w", lease);
  const v1::Lease next = coordinator_.Acquire("w");
  ASSERT_THAT(next.trials(), SizeIs(1));
  const v1::DiskUse less = coordinator_->reads().GetExperiment(experiment)->disk_use();
  EXPECT_EQ(less.events(), static_cast<int64_t>(coordinator_.History(experiment).size()));
  EXPECT_LT(less.event_bytes(), use.event_bytes());

  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  EXPECT_THAT(Artifacts(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(coordinator_->reads().GetExperiment(experiment).status()));
}

v1::Event LogLine(const v1::Lease& lease, int64_t sequence, const std::string& text) {
  v1::Event event = PointsEvent(lease, 0, sequence, 1);
  event.mutable_log_line()->set_severity(v1::LogLine::ERROR);
  event.mutable_log_line()->set_text(text);
  return event;
}

std::vector<std::string> Log(Core& coordinator, const std::string& name) {
  std::vector<std::string> log;
  int64_t start = 0;
  for (bool at_end = false; !at_end;) {
    const auto page = coordinator.event_log().ReadEvents(name, start, 3, /*log_only=*/true);
    if (!page.ok()) return {std::string(page.status().message())};
    for (const v1::Event& event : page->events) {
      log.push_back(event.has_log_line() ? event.log_line().text()
                                         : v1::TrialState_Name(event.state_change().to()));
    }
    start = page->next_position;
    at_end = page->at_end;
  }
  return log;
}

TEST_F(CoreHousekeepingTest, LogOutlivesAttemptsAndRestarts) {
  const std::string experiment = Create("weights", 2);
  const std::string name = experiment + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(lease.trials(0).trial(), name);
  coordinator_
      .Send(lease, {PointsEvent(lease, 0, 1, 10), LogLine(lease, 2, "out of memory"),
                    OutcomeEvent(lease, 0, 3, 10, v1::Outcome::FAILED_TEMPORARILY, "memory")})
      .IgnoreError();
  coordinator_.Advance(absl::Minutes(10));  // the back-off
  ASSERT_EQ(coordinator_.Register("w", 2), absl::OkStatus());
  const v1::Lease other = coordinator_.Acquire("w");
  ASSERT_THAT(other.trials(), SizeIs(2)) << "both are leased again";
  EXPECT_THAT(Log(*coordinator_, name),
              ElementsAre("RUNNING", "out of memory", "QUEUED", "RUNNING"));
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_THAT(Log(*coordinator_, name),
              ElementsAre("RUNNING", "out of memory", "QUEUED", "RUNNING"));
  // The points of the first attempt were deleted: they are measured again.
  const std::vector<v1::Event> history = coordinator_.History(name);
  EXPECT_THAT(history, SizeIs(4)) << "only the events of its log are left";
  for (const v1::Event& event : history) {
    EXPECT_EQ(event.trial(), name);
    EXPECT_FALSE(event.has_training_points());
  }
  // The experiment's log has the lines of both. Other events are skipped once.
  EXPECT_THAT(Log(*coordinator_, experiment), SizeIs(5));
  const int64_t next =
      coordinator_->event_log().ReadEvents(experiment, 0, 100, /*log_only=*/true)->next_position;
  EXPECT_EQ(next, coordinator_.History(experiment).back().position() + 1);
}

TEST_F(CoreHousekeepingTest, LogBeyondItsLimitIsRefused) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  int64_t sequence = 0;
  std::vector<v1::Event> lines;
  for (int64_t i = 0; i < kMaxLogLines; ++i) lines.push_back(LogLine(lease, ++sequence, "line"));
  EXPECT_EQ(coordinator_.Send(lease, lines)->refusal(), 0);
  EXPECT_EQ(coordinator_.Send(lease, {PointsEvent(lease, 0, ++sequence, 1)})->refusal(), 0);
  const auto refused = coordinator_.Send(lease, {LogLine(lease, ++sequence, "one more")});
  EXPECT_EQ(refused->refusal(), v1::StreamEventsResponse::INVALID);
  EXPECT_THAT(refused->detail(), HasSubstr(absl::StrCat(kMaxLogLines, " log lines")));
  EXPECT_EQ(
      coordinator_.Send(lease, {LogLine(lease, sequence, std::string(1 << 20, 'x'))})->refusal(),
      v1::StreamEventsResponse::INVALID);
}

TEST_F(CoreHousekeepingTest, StartDeletesFilesOfDeletedExperiments) {
  const std::string artifacts = coordinator_.artifacts_dir() + "/";
  const std::string experiment = Create("weights");
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  // As if the server had died before their deletion. Plus files that do not belong to this
  // database.
  for (const char* id : {"sort-1", "sort-2", "other-1"}) {
    std::filesystem::create_directories(artifacts + id + "/trial");
  }
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  coordinator_->sweeper().Flush();
  EXPECT_FALSE(std::filesystem::exists(artifacts + "sort-1"));
  EXPECT_TRUE(std::filesystem::exists(artifacts + "sort-2/trial"));
  EXPECT_TRUE(std::filesystem::exists(artifacts + "other-1/trial"));
}

TEST_F(CoreHousekeepingTest, DeletedFilesGoInPartsWhileServing) {
  const std::string artifacts = coordinator_.artifacts_dir() + "/sort-1";
  const std::string experiment = Create("weights");
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  for (int i = 0; i < 120; ++i) {
    std::filesystem::create_directories(absl::StrCat(artifacts, "/trial", i));
  }
  // The command loop is busy meanwhile.
  std::latch deleted(1), may_serve(1);
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  coordinator_->loop().PostCommand({.apply = [&]() -> CommandLoop::Answer {
                                      deleted.count_down();
                                      may_serve.wait();
                                      return nullptr;
                                    },
                                    .fail = [](const absl::Status&) {}});
  deleted.wait();
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (std::filesystem::exists(artifacts) && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(std::filesystem::exists(artifacts));
  may_serve.count_down();
}

// Without a restart, and without another command: no caller waits for it.
TEST_F(CoreHousekeepingTest, DeletedStorageIsFreeWithinAMinute) {
  const std::string experiment = Create("nothing", 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  EXPECT_THAT(Artifacts(), SizeIs(2));
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  const auto goes = [&] {
    while (!CoreHousekeepingTest::Artifacts(coordinator_.artifacts_dir()).empty() &&
           absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return CoreHousekeepingTest::Artifacts(coordinator_.artifacts_dir()).empty();
  };
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_TRUE(goes());
  Train(coordinator_.Acquire("w"));
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  EXPECT_TRUE(goes());
}

// A server that dies between the commit and the deletion. Nothing but the record names the file:
// its trial still runs.
TEST_F(CoreHousekeepingTest, DeletionSurvivesARestart) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_->sweeper().Pause());
  Train(lease);
  EXPECT_THAT(Artifacts(), SizeIs(3));
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_THAT(Artifacts(), UnorderedElementsAre("checkpoint 2", "checkpoint 3"));
}

TEST_F(CoreHousekeepingTest, SweptRecordsAreForgotten) {
  Create("weights");
  Train(coordinator_.Acquire("w"));
  const auto connection =
      SqliteConnection::Open(coordinator_.data_dir() + "/lengthwise.db", /*read_only=*/true);
  ASSERT_TRUE(connection.ok()) << connection.status();
  coordinator_->sweeper().Flush();
  SqliteStatement query = (*connection)->Query("SELECT count(*) FROM sweeps");
  EXPECT_EQ(query.Step() ? query.Int(0) : -1, 0);
}

TEST_F(CoreHousekeepingTest, IdleServerContinuesADeletion) {
  Create("weights", 20);
  ASSERT_TRUE(coordinator_.Cancel("experiments/sort-1").ok());
  coordinator_.Close();
  const std::string database = coordinator_.data_dir() + "/lengthwise.db";
  {  // a server that dies right after the deletion's commit
    const auto storage = OpenSqliteStorage(database);
    ASSERT_TRUE(storage.ok()) << storage.status();
    StorageWriter& writer = (*storage)->writer();
    ASSERT_EQ(writer.Begin(), absl::OkStatus());
    const auto experiment = writer.FindExperiment("sort-1");
    ASSERT_EQ(writer.DeleteExperiment((*experiment)->key), absl::OkStatus());
    ASSERT_EQ(writer.Commit(), absl::OkStatus());
  }
  const auto connection = SqliteConnection::Open(database, /*read_only=*/true);
  ASSERT_TRUE(connection.ok()) << connection.status();
  const auto rows = [&] {
    SqliteStatement query =
        (*connection)
            ->Query(
                "SELECT (SELECT count(*) FROM experiments) + (SELECT count(*) FROM trials) + "
                "(SELECT count(*) FROM packs) + (SELECT count(*) FROM shared) + "
                "(SELECT count(*) FROM events)");
    return query.Step() ? query.Int(0) : -1;
  };
  ASSERT_GT(rows(), 20);
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  // No command arrives, and the clock stands still.
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (rows() > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(rows(), 0);
}

// A store that keeps failing must not be retried by every command.
TEST_F(CoreHousekeepingTest, FailedCleanUpIsRetriedOnceASecond) {
  const std::string experiment = Create("weights", 20);
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  const auto other =
      SqliteConnection::Open(coordinator_.data_dir() + "/lengthwise.db", /*read_only=*/false);
  ASSERT_TRUE(other.ok()) << other.status();
  const auto trials = [&] {
    SqliteStatement query = (*other)->Query("SELECT count(*) FROM trials");
    return query.Step() ? query.Int(0) : -1;
  };
  ASSERT_EQ((*other)->Execute("CREATE TRIGGER no BEFORE DELETE ON trials BEGIN "
                              "SELECT RAISE(FAIL, 'not now'); END"),
            absl::OkStatus());
  // Only the log reports the first try.
  const std::string log = coordinator_.data_dir() + "/log";
  const int terminal = dup(STDERR_FILENO);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dup2(file, STDERR_FILENO);
  close(file);
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!absl::StrContains(platform::ReadFile(log).value_or(""), "cannot clean up") &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  ASSERT_EQ((*other)->Execute("DROP TRIGGER no"), absl::OkStatus());
  for (int i = 0; i < 10; ++i) coordinator_->loop().Flush();
  EXPECT_EQ(trials(), 20) << "the second is not over";
  coordinator_.Advance(absl::Seconds(1));
  while (trials() > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(trials(), 0);
}

// A server that dies after the commit of a trial's end deletes nothing: the test restores its
// files.
TEST_F(CoreHousekeepingTest, StartDeletesLeftoverCheckpoints) {
  for (const auto& [keep, kind, stays] :
       std::vector<std::tuple<std::string, v1::Outcome::Kind, std::vector<std::string>>>{
           {"weights", v1::Outcome::COMPLETED, {"checkpoint 3"}},
           {"all", v1::Outcome::COMPLETED, {"checkpoint 2", "checkpoint 3"}},
           {"weights", v1::Outcome::FAILED_PERMANENTLY, {"checkpoint 2", "checkpoint 3"}},
           {"nothing", v1::Outcome::COMPLETED, {}}}) {
    const std::string experiment = Create(keep, 2);
    const v1::Lease lease = coordinator_.Acquire("w");
    Train(lease);
    coordinator_.Upload(lease, 0, 40, "not told of").IgnoreError();
    coordinator_->sweeper().Flush();
    const std::string artifacts = coordinator_.artifacts_dir();
    const std::string copy = coordinator_.data_dir() + "/copy";
    EXPECT_THAT(Artifacts(), SizeIs(3));
    std::filesystem::copy(artifacts, copy, std::filesystem::copy_options::recursive);
    End(lease, kind);
    const v1::Lease running = coordinator_.Acquire("w");
    coordinator_.Close();
    std::filesystem::remove_all(artifacts);
    std::filesystem::rename(copy, artifacts);
    EXPECT_THAT(Artifacts(artifacts), SizeIs(3));

    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_THAT(Artifacts(), testing::UnorderedElementsAreArray(stays)) << keep;
    // Uploads of a running trial stay, even without their event.
    ASSERT_EQ(coordinator_.Upload(running, 0, 10, "of the other"), absl::OkStatus());
    coordinator_.Close();
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_THAT(Artifacts(), SizeIs(stays.size() + 1));
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
    End(running, v1::Outcome::FAILED_PERMANENTLY, 1);
    ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
    EXPECT_THAT(Artifacts(), IsEmpty());
  }
}

// Reads the whole model, which is small, or returns the error.
absl::StatusOr<std::string> Model(Core& coordinator, const std::string& trial,
                                  int64_t* step = nullptr) {
  absl::StatusOr<OpenedModel> model = coordinator.artifacts().OpenModel(trial);
  if (!model.ok()) return model.status();
  if (step != nullptr) *step = model->step;
  return model->bytes->Next();
}

TEST_F(CoreHousekeepingTest, NewestModelCanBeReadAtAnyTime) {
  const std::string trial = Create("weights") + "/trials/lr0-seed0";
  absl::Status none = Model(*coordinator_, trial).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("it is QUEUED and has stored no checkpoint yet"));
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  int64_t step = 0;
  EXPECT_EQ(Model(*coordinator_, trial, &step).value(), "checkpoint 3");
  EXPECT_EQ(step, 30);
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_EQ(Model(*coordinator_, trial).value(), "checkpoint 3");
  EXPECT_EQ(Model(*coordinator_, trial + "x").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CoreHousekeepingTest, ModelThatWasNotKeptIsNotFound) {
  const std::string trial = Create("nothing") + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  const absl::Status status = Model(*coordinator_, trial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("its specification keeps nothing"));
}

TEST_F(CoreHousekeepingTest, RetentionDeletesArtifactsAndLeavesResults) {
  coordinator_.Close();
  coordinator_.options().retention = absl::Hours(24);
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const auto train = [&](const std::string& retention) {
    const std::string trial = Create("weights", 1, retention) + "/trials/lr0-seed0";
    const v1::Lease lease = coordinator_.Acquire("w");
    Train(lease);
    v1::Event map = PointsEvent(lease, 0, 4, 30);
    v1::AttentionMap& attention = *map.mutable_attention_map();
    attention.set_length(1);
    attention.add_tokens(0);
    attention.add_positions(0);
    attention.set_layers(1);
    attention.set_heads(1);
    attention.set_probabilities(std::string(4, '\0'));
    v1::Event projected = PointsEvent(lease, 0, 5, 30);
    v1::Projection& projection = *projected.mutable_projection();
    projection.set_fitted_length(1);
    projection.set_length(1);
    projection.set_sequences(1);
    projection.set_tokens(1);
    projection.set_depths(1);
    projection.set_coordinates(std::string(8, '\0'));
    projection.add_explained_variance(0.5);
    projection.add_explained_variance(0.5);
    EXPECT_EQ(coordinator_.Send(lease, {map, projected, AccuraciesEvent(lease, 0, 6, 30, {1})})
                  ->acknowledged_sequence(),
              6);
    End(lease, v1::Outcome::COMPLETED, /*sequence=*/7);
    return trial;
  };
  const std::string usual = train(""), soon = train("12h"), never = train("forever");
  const auto is_gone = [&](const std::string& trial) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (Model(*coordinator_, trial).ok() && absl::Now() < deadline) coordinator_->loop().Flush();
    return absl::IsNotFound(Model(*coordinator_, trial).status());
  };
  const size_t events = coordinator_.History(soon).size();
  coordinator_.Pause(absl::Hours(13));
  EXPECT_TRUE(is_gone(soon));
  EXPECT_TRUE(Model(*coordinator_, usual).ok());
  EXPECT_THAT(Artifacts(), SizeIs(2));
  EXPECT_THAT(coordinator_.History(soon), SizeIs(events - 2)) << "without map and projection";
  EXPECT_THAT(coordinator_.History(usual), SizeIs(events));
  const auto trial = coordinator_->reads().GetTrial(soon);
  EXPECT_EQ(trial->state(), v1::SUCCEEDED);
  EXPECT_TRUE(trial->has_outcome());
  coordinator_.Pause(absl::Hours(12));
  EXPECT_TRUE(is_gone(usual));
  EXPECT_TRUE(Model(*coordinator_, never).ok());
  EXPECT_THAT(Artifacts(), SizeIs(1));
}

TEST_F(CoreHousekeepingTest, RetentionCountsFromTheNewestEnd) {
  const std::string experiment = Create("weights", 1, "12h");
  const std::string trial = experiment + "/trials/lr0-seed0";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
    const v1::Lease lease = coordinator_.Acquire("w");
    ASSERT_THAT(lease.trials(), SizeIs(1));
    EXPECT_EQ(lease.trials(0).checkpoint_step(), 0);
    Train(lease);
    End(lease, v1::Outcome::FAILED_PERMANENTLY);
    coordinator_.Pause(absl::Hours(11));
    coordinator_->loop().Flush();
    EXPECT_TRUE(Model(*coordinator_, trial).ok());
    coordinator_.Pause(absl::Hours(2));
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (!Artifacts().empty() && absl::Now() < deadline) coordinator_->loop().Flush();
    EXPECT_THAT(Artifacts(), IsEmpty());
    ASSERT_TRUE(coordinator_.Retry(experiment, {v1::FAILED}).ok());
  }
}

TEST_F(CoreHousekeepingTest, DamagedModelIsNotServed) {
  const std::string trial = Create("weights") + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  End(lease, v1::Outcome::COMPLETED);
  const std::string path = coordinator_.artifacts_dir() + "/sort-1/lr0-seed0/" +
                           platform::Sha256Hex("checkpoint 3") + ".safetensors";
  ASSERT_TRUE(std::filesystem::exists(path));
  // The same size, as after a flipped bit.
  std::ofstream(path) << "checkpoint 7";
  absl::Status status = Model(*coordinator_, trial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("is damaged"));
  std::filesystem::remove(path);
  status = Model(*coordinator_, trial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("is gone"));
}

TEST_F(CoreHousekeepingTest, DatabaseShrinksAfterADelete) {
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("large");
  request.mutable_specification()->set_description(std::string(20'000'000, 'x'));
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(1);
  ASSERT_TRUE(coordinator_.TryCreate(request).ok());
  ASSERT_GT(coordinator_->GetStatistics().database_bytes, 20'000'000);
  ASSERT_TRUE(coordinator_.Cancel("experiments/large-1").ok());
  ASSERT_EQ(coordinator_.Delete("experiments/large-1"), absl::OkStatus());
  // Without another command. The log file keeps its size.
  const auto database_bytes = [this] {
    return std::filesystem::file_size(coordinator_.data_dir() + "/lengthwise.db");
  };
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (database_bytes() > 6'000'000 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_LT(database_bytes(), 6'000'000u);
}

}  // namespace
}  // namespace lengthwise::server
