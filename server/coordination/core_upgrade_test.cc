// A data directory of an older release is opened and upgraded, and its trials continue.
#include <sqlite3.h>

#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/sqlite_schema.h"

namespace lengthwise::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The tables as version 1 created them, including the file's mark ("Lnwz"). Never change them: such
// databases exist.
constexpr char kVersion1[] = R"sql(
PRAGMA journal_mode = WAL;
PRAGMA application_id = 1282307962;
CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, apply_time INTEGER NOT NULL);
INSERT INTO schema_migrations VALUES (1, 1690000000000000);
CREATE TABLE experiment_names (
  name        TEXT PRIMARY KEY,
  last_number INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE experiments (
  key                 INTEGER PRIMARY KEY AUTOINCREMENT,
  id                  TEXT NOT NULL UNIQUE,
  name                TEXT NOT NULL,
  request_id          TEXT UNIQUE,
  request_fingerprint TEXT NOT NULL,
  owner               TEXT NOT NULL,
  priority            INTEGER NOT NULL,
  specification       BLOB NOT NULL,
  source              BLOB NOT NULL,
  create_time         INTEGER NOT NULL,
  end_time            INTEGER NOT NULL DEFAULT 0,
  queued              INTEGER NOT NULL DEFAULT 0,
  running             INTEGER NOT NULL DEFAULT 0,
  succeeded           INTEGER NOT NULL DEFAULT 0,
  failed              INTEGER NOT NULL DEFAULT 0,
  cancelled           INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE packs (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment    INTEGER NOT NULL REFERENCES experiments (key),
  pack_key      TEXT NOT NULL,
  specification BLOB NOT NULL,
  task          TEXT NOT NULL,
  network       TEXT NOT NULL,
  encoding      TEXT NOT NULL
);
CREATE INDEX packs_by_experiment ON packs (experiment);
CREATE TABLE trials (
  key             INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment      INTEGER NOT NULL REFERENCES experiments (key),
  idx             INTEGER NOT NULL,
  id              TEXT NOT NULL,
  pack            INTEGER NOT NULL REFERENCES packs (key),
  learning_rate   REAL NOT NULL,
  weight_seed     INTEGER NOT NULL,
  data_seed       INTEGER NOT NULL,
  state           INTEGER NOT NULL,
  reason          TEXT NOT NULL,
  attempt         INTEGER NOT NULL DEFAULT 0,
  failures        INTEGER NOT NULL DEFAULT 0,
  not_before      INTEGER NOT NULL DEFAULT 0,
  worker          TEXT NOT NULL DEFAULT '',
  token           INTEGER NOT NULL DEFAULT 0,
  checkpoint_step INTEGER NOT NULL DEFAULT 0,
  start_time      INTEGER NOT NULL DEFAULT 0,
  end_time        INTEGER NOT NULL DEFAULT 0,
  outcome         BLOB NOT NULL DEFAULT x''
);
CREATE UNIQUE INDEX trials_by_index ON trials (experiment, idx);
CREATE UNIQUE INDEX trials_by_id ON trials (experiment, id);
CREATE INDEX trials_queued ON trials (key) WHERE state = 1;
CREATE INDEX trials_running ON trials (key) WHERE state = 2;
CREATE INDEX trials_cancelled ON trials (token) WHERE state = 5 AND token > 0;
CREATE TABLE events (
  position   INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment INTEGER NOT NULL,
  trial      INTEGER NOT NULL REFERENCES trials (key),
  attempt    INTEGER NOT NULL,
  sequence   INTEGER NOT NULL,
  step       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  payload    BLOB NOT NULL
);
CREATE INDEX events_by_experiment ON events (experiment, position);
CREATE INDEX events_by_kind ON events (trial, kind);
CREATE UNIQUE INDEX events_by_sequence ON events (trial, attempt, sequence) WHERE sequence > 0;
CREATE TABLE leases (
  token      INTEGER PRIMARY KEY AUTOINCREMENT,
  worker     TEXT NOT NULL,
  grant_time INTEGER NOT NULL
);
)sql";

void Execute(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

// The values of a query's rows as text, one per line.
std::string Query(const std::string& path, const std::string& sql) {
  std::string values;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const auto append = [](void* to, int columns, char** row, char**) {
    for (int i = 0; i < columns; ++i) {
      absl::StrAppend(static_cast<std::string*>(to), row[i] == nullptr ? "NULL" : row[i], "\n");
    }
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), append, &values, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
  return values;
}

std::string Blob(const google::protobuf::Message& message) {
  return absl::StrCat("x'", absl::BytesToHexString(message.SerializeAsString()), "'");
}

// One experiment of three trials in one pack: the first has succeeded, the second is running under
// lease 2 and has sent one event, the third is waiting.
std::string Rows() {
  v1::ExperimentSpecification experiment;
  experiment.set_name("old");
  v1::TrialSpecification pack;
  pack.mutable_task()->set_name("bucket_sort");
  pack.mutable_training()->set_steps(100);
  pack.mutable_evaluation()->set_seen_up_to(2);
  v1::Outcome outcome;
  outcome.set_kind(v1::Outcome::COMPLETED);
  outcome.set_training_seconds(12);
  v1::Event change;
  change.mutable_state_change()->set_from(v1::RUNNING);
  change.mutable_state_change()->set_to(v1::SUCCEEDED);
  v1::Event points;
  points.mutable_training_points()->add_steps(10);
  points.mutable_training_points()->add_losses(0.5);
  // From a release that stored no mean accuracies.
  v1::Event evaluation;
  v1::LengthAccuracies& measured = *evaluation.mutable_length_accuracies();
  measured.set_final(true);
  for (const int32_t length : {1, 2, 3}) {
    measured.add_lengths(length);
    measured.add_accuracies(1.0 / length);
    measured.add_losses(0);
  }
  const std::string trial =
      "INSERT INTO trials (experiment, idx, id, pack, learning_rate, weight_seed, data_seed, "
      "state, reason, attempt, worker, token, outcome) VALUES (1, ";
  const std::string event =
      "INSERT INTO events (experiment, trial, attempt, sequence, step, kind, payload) VALUES (1, ";
  return absl::StrCat(
      "INSERT INTO experiment_names VALUES ('old', 1);"
      "INSERT INTO experiments (id, name, request_id, request_fingerprint, owner, priority, "
      "specification, source, create_time, queued, running, succeeded) VALUES ('old-1', 'old', "
      "NULL, '', 'ada', 3, ",
      Blob(experiment), ", x'', 1690000000000000, 1, 1, 1);",
      "INSERT INTO packs (experiment, pack_key, specification, task, network, encoding) VALUES "
      "(1, 'shape', ",
      Blob(pack), ", 'bucket_sort', 'encoder', 'none');", trial,
      "0, 'lr0-seed0', 1, 0.1, 0, 0, 3, 'completed', 1, 'w', 1, ", Blob(outcome), ");", trial,
      "1, 'lr0-seed1', 1, 0.1, 1, 1, 2, 'leased', 1, 'w', 2, x'');",  //
      trial, "2, 'lr0-seed2', 1, 0.1, 2, 2, 1, 'submitted', 0, '', 0, x'');",
      "INSERT INTO leases VALUES (2, 'w', 1690000000000000);",  //
      event, "1, 1, 0, 100, ", static_cast<int>(v1::Event::kStateChange), ", ", Blob(change), ");",
      event, "2, 1, 1, 10, ", static_cast<int>(v1::Event::kTrainingPoints), ", ", Blob(points),
      ");", event, "1, 1, 1, 100, ", static_cast<int>(v1::Event::kLengthAccuracies), ", ",
      Blob(evaluation), ");");
}

class CoreUpgradeTest : public testing::Test {
 protected:
  CoreUpgradeTest() : directory_(NewDirectory()), coordinator_(directory_) {
    std::filesystem::create_directories(directory_);
    Execute(directory_ + "/lengthwise.db", absl::StrCat(kVersion1, Rows()));
  }

  const std::string directory_;
  TestCoordinator coordinator_;
};

TEST_F(CoreUpgradeTest, UpgradeIsDescribedBeforeItHappens) {
  const std::string path = directory_ + "/lengthwise.db";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(DescribeUpgrade(path).value(),
                HasSubstr(absl::StrCat("version 1: the start of this release upgrades it to ",
                                       kSchemaVersion)))
        << "and changes nothing";
  }
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_THAT(DescribeUpgrade(path).value(), HasSubstr("its start does not change it"))
      << "while a server uses it";
  coordinator_.Close();
  Execute(path, "INSERT INTO schema_migrations VALUES (1000, 0)");
  EXPECT_THAT(std::string(DescribeUpgrade(path).status().message()),
              HasSubstr("use the newer lengthwise_server"));
  EXPECT_FALSE(DescribeUpgrade(directory_ + "/none.db").ok());
}

TEST_F(CoreUpgradeTest, TrialsOfAVersionOneDatabaseContinue) {
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  const auto experiment = coordinator_->reads().GetExperiment("experiments/old-1");
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->owner(), "ada");
  EXPECT_EQ(experiment->specification().name(), "old");
  EXPECT_EQ(experiment->trials().succeeded(), 1);
  const auto ended = coordinator_->reads().GetTrial("experiments/old-1/trials/lr0-seed0");
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->state(), v1::SUCCEEDED);
  EXPECT_EQ(ended->outcome().training_seconds(), 12);
  EXPECT_EQ(ended->specification().task().name(), "bucket_sort");
  // Version 1 stored no queue time, so the experiment's creation time is used.
  EXPECT_GT(coordinator_->GetStatistics().oldest_queued_seconds, 0);

  // The worker of the lease continues from where it was.
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  v1::Lease lease;
  lease.set_lease_id("lease-2");
  lease.set_fencing_token(2);
  lease.add_trials()->set_trial("experiments/old-1/trials/lr0-seed1");
  lease.mutable_trials(0)->set_attempt(1);
  EXPECT_FALSE(coordinator_.Heartbeat("w", {lease})->leases(0).lost());
  EXPECT_EQ(coordinator_.Send(lease, {PointsEvent(lease, 0, 1, 10), PointsEvent(lease, 0, 2, 20)})
                ->acknowledged_sequence(),
            2);
  EXPECT_EQ(coordinator_.History("experiments/old-1/trials/lr0-seed1").size(), 2u);
  EXPECT_EQ(
      coordinator_.Send(lease, coordinator_.Completion(lease, 0, 3, 100))->acknowledged_sequence(),
      4);
  // The waiting trial is leased with a new token ...
  const v1::Lease next = coordinator_.Acquire("w");
  ASSERT_EQ(next.trials_size(), 1);
  EXPECT_EQ(next.trials(0).trial(), "experiments/old-1/trials/lr0-seed2");
  EXPECT_EQ(next.fencing_token(), 3);
  // ... and an id that cannot be guessed.
  EXPECT_THAT(next.lease_id(), testing::StartsWith("lease-3-"));
  EXPECT_EQ(coordinator_->reads().GetExperiment("experiments/old-1")->trials().succeeded(), 2);

  // The upgraded database opens again.
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_EQ(coordinator_->reads().GetExperiment("experiments/old-1")->trials().running(), 1);
}

TEST_F(CoreUpgradeTest, MissingMeanAccuraciesAreComputed) {
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  const std::string name = "experiments/old-1/trials/lr0-seed0";
  int read = 0;
  const auto expect_means = [&](const v1::Event& event) {
    if (!event.has_length_accuracies()) return;
    ++read;
    EXPECT_DOUBLE_EQ(event.length_accuracies().seen_accuracy(), 0.75);
    EXPECT_DOUBLE_EQ(event.length_accuracies().unseen_accuracy(), 1.0 / 3);
  };
  const auto page = coordinator_->event_log().ReadEvents(name, 0, 10);
  ASSERT_TRUE(page.ok()) << page.status();
  for (const v1::Event& event : page->events) expect_means(event);
  ASSERT_EQ(coordinator_->event_log().ForEachEvent("experiments/old-1",
                                                   v1::Event::kLengthAccuracies, expect_means),
            absl::OkStatus());
  EXPECT_EQ(read, 2);
  v1::SummarizeExperimentRequest request;
  request.set_name("experiments/old-1");
  const auto summary = coordinator_->reads().SummarizeExperiment(request);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_DOUBLE_EQ(summary->cells(0).unseen_accuracy().mean(), 1.0 / 3);
}

TEST_F(CoreUpgradeTest, NewerDatabaseIsRefusedAndUnchanged) {
  const std::string path = directory_ + "/lengthwise.db";
  Execute(path,
          "INSERT INTO schema_migrations VALUES (99, 0); ALTER TABLE trials ADD COLUMN later TEXT");
  const std::string versions = "SELECT version FROM schema_migrations ORDER BY version";
  const std::string schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name";
  const std::string schema_before = Query(path, schema);
  EXPECT_THAT(schema_before, HasSubstr("later TEXT"));
  ASSERT_EQ(Query(path, versions), "1\n99\n");
  const absl::Status status = coordinator_.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("schema version 99"), HasSubstr("use the newer lengthwise_server")));
  EXPECT_EQ(Query(path, versions), "1\n99\n");
  EXPECT_EQ(Query(path, schema), schema_before);
  Execute(path, "DELETE FROM schema_migrations WHERE version = 99");
  EXPECT_EQ(coordinator_.Open(), absl::OkStatus()) << "the database is still version 1";
}

}  // namespace
}  // namespace lengthwise::server
