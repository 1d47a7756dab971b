#include "server/storage/sqlite_storage.h"

#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/testing/storage_conformance.h"

namespace lengthwise::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name + ".db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  return path;
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StorageConformanceTest,
                         testing::Values(StorageFactory([](bool fresh) {
                           static const std::string* const path =
                               new std::string(testing::TempDir() + "/conformance.db");
                           if (fresh) NewPath("conformance");
                           auto storage = OpenSqliteStorage(*path);
                           EXPECT_TRUE(storage.ok()) << storage.status();
                           return *std::move(storage);
                         })));

void Execute(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

// In an experiment's row, these columns are behind its specification, of up to 1 MiB.
TEST(SqliteStorageTest, ExpiredExperimentsAreFoundWithoutReadingRows) {
  const std::string path = NewPath("expired");
  ASSERT_TRUE(OpenSqliteStorage(path).ok());
  const auto connection = SqliteConnection::Open(path, /*read_only=*/true);
  ASSERT_TRUE(connection.ok()) << connection.status();
  SqliteStatement plan =
      (*connection)
          ->Query(
              "EXPLAIN QUERY PLAN SELECT id, retention FROM experiments "
              "WHERE key >= 1 AND end_time > 0 AND end_time <> expired_end ORDER BY key");
  ASSERT_TRUE(plan.Step()) << plan.status();
  EXPECT_THAT(plan.String(3), HasSubstr("USING COVERING INDEX experiments_kept"));
}

TEST(SqliteStorageTest, NewerDatabaseIsRefused) {
  const std::string path = NewPath("newer");
  ASSERT_TRUE(OpenSqliteStorage(path).ok());
  Execute(path, "INSERT INTO schema_migrations VALUES (1000, 0)");
  const absl::Status status = OpenSqliteStorage(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("schema version 1000"));
}

TEST(SqliteStorageTest, DatabaseBelongsToTheLastThatOpenedIt) {
  const std::string path = NewPath("owned");
  absl::Status lost;
  SqliteOptions options;
  options.on_lost = [&](const absl::Status& status) { lost = status; };
  const auto first = OpenSqliteStorage(path, options);
  ASSERT_TRUE(first.ok()) << first.status();
  StorageWriter& writer = (*first)->writer();
  ASSERT_EQ(writer.Begin(), absl::OkStatus());
  ExperimentRecord experiment;
  experiment.name = "first";
  ASSERT_EQ(writer.InsertExperiment(experiment), absl::OkStatus());
  ASSERT_EQ(writer.Commit(), absl::OkStatus());
  {
    const auto second = OpenSqliteStorage(path);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(lost, absl::OkStatus());
    EXPECT_EQ(writer.Begin(), lost);
    EXPECT_TRUE(absl::IsFailedPrecondition(lost)) << lost;
    EXPECT_THAT(std::string(lost.message()),
                AllOf(HasSubstr(path), HasSubstr("another server has opened this database since")));
    EXPECT_TRUE((*(*second)->Read())->FindExperiment("first-1")->has_value());
    EXPECT_EQ((*second)->writer().Begin(), absl::OkStatus());
    EXPECT_EQ((*second)->writer().Commit(), absl::OkStatus());
  }
  EXPECT_EQ(writer.Begin(), lost) << "for good, although the other has ended";
}

TEST(SqliteStorageTest, FileThatWentAwayTakesNothingMore) {
  for (const bool replaced : {false, true}) {
    const std::string path = NewPath("gone");
    const std::string elsewhere = NewPath("elsewhere");
    absl::Status lost;
    SqliteOptions options;
    options.on_lost = [&](const absl::Status& status) { lost = status; };
    const auto storage = OpenSqliteStorage(path, options);
    ASSERT_TRUE(storage.ok()) << storage.status();
    ASSERT_EQ((*storage)->writer().Begin(), absl::OkStatus());
    ASSERT_EQ((*storage)->writer().Commit(), absl::OkStatus());
    std::filesystem::rename(path, elsewhere);
    if (replaced) std::filesystem::copy_file(elsewhere, path);
    EXPECT_TRUE(absl::IsFailedPrecondition((*storage)->writer().Begin()));
    EXPECT_THAT(std::string(lost.message()),
                HasSubstr(path + (replaced ? " is another file now" : " is gone")));
  }
}

TEST(SqliteStorageTest, DatabaseOfAnotherProgramIsRefused) {
  const std::string path = NewPath("anothers");
  Execute(path, "CREATE TABLE theirs (x)");
  EXPECT_EQ(OpenSqliteStorage(path).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SqliteStorageTest, UnopenablePathIsNamed) {
  const absl::Status status = OpenSqliteStorage("/no/such/directory/file.db").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/directory/file.db"));
}

// Stores `count` experiments of 1 MB each, and deletes all but the last.
void StoreAndDelete(StorageWriter& writer, int count) {
  std::vector<int64_t> keys;
  for (int i = 0; i < count; ++i) {
    ExperimentRecord experiment;
    experiment.name = "sort";
    experiment.specification = std::string(1'000'000, static_cast<char>('a' + i));
    ASSERT_TRUE(writer.Begin().ok());
    ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
    ASSERT_TRUE(writer.Commit().ok());
    keys.push_back(experiment.key);
  }
  keys.pop_back();
  ASSERT_TRUE(writer.Begin().ok());
  for (const int64_t key : keys) ASSERT_TRUE(writer.DeleteExperiment(key).ok());
  ASSERT_TRUE(writer.Commit().ok());
}

TEST(SqliteStorageTest, UnusedSpaceIsReturnedInSteps) {
  const std::string path = NewPath("steps");
  auto storage = OpenSqliteStorage(path);
  ASSERT_TRUE(storage.ok());
  StorageWriter& writer = (*storage)->writer();
  EXPECT_FALSE(*writer.CleanUp());
  StoreAndDelete(writer, 20);
  Execute(path, "PRAGMA wal_checkpoint");
  ASSERT_GT(std::filesystem::file_size(path), 20'000'000u);
  int steps = 0;
  while (*writer.CleanUp()) ++steps;
  EXPECT_GE(steps, 10);  // of 1 MiB each
  EXPECT_LT(std::filesystem::file_size(path), 6'000'000u);
  EXPECT_FALSE(*writer.CleanUp());
  EXPECT_EQ((*(*(*storage)->Read())->FindExperiment("sort-20"))->specification,
            std::string(1'000'000, 'a' + 19));
}

TEST(SqliteStorageTest, DatabaseOfAnOlderProgramIsShrunkAtTheStart) {
  const std::string path = NewPath("older");
  Execute(path, "PRAGMA auto_vacuum = NONE; CREATE TABLE x (y); DROP TABLE x");
  {
    auto storage = OpenSqliteStorage(path);
    ASSERT_TRUE(storage.ok());
    StoreAndDelete((*storage)->writer(), 20);
    while (*(*storage)->writer().CleanUp()) {
    }
  }
  ASSERT_GT(std::filesystem::file_size(path), 20'000'000u);
  auto storage = OpenSqliteStorage(path);
  ASSERT_TRUE(storage.ok());
  EXPECT_LT(std::filesystem::file_size(path), 2'000'000u);
  EXPECT_TRUE((*(*(*storage)->Read())->FindExperiment("sort-20")).has_value());
  // From now on space is returned step by step.
  StoreAndDelete((*storage)->writer(), 20);
  EXPECT_TRUE(*(*storage)->writer().CleanUp());
}

TEST(SqliteStorageTest, DeletionContinuesAcrossRestarts) {
  const std::string path = NewPath("parts");
  constexpr int kTrials = 2500;
  const auto count = [&](const char* query) {
    auto connection = SqliteConnection::Open(path, /*read_only=*/true);
    SqliteStatement statement = (*connection)->Query(query);
    return statement.Step() ? statement.Int(0) : -1;
  };
  {
    auto storage = OpenSqliteStorage(path);
    ASSERT_TRUE(storage.ok());
    StorageWriter& writer = (*storage)->writer();
    ASSERT_TRUE(writer.Begin().ok());
    for (const char* name : {"large", "other"}) {
      ExperimentRecord experiment;
      experiment.name = name;
      ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
      PackRecord pack;
      pack.experiment = experiment.key;
      ASSERT_TRUE(writer.InsertPack(pack).ok());
      std::vector<TrialRecord> trials(kTrials);
      for (int i = 0; i < kTrials; ++i) {
        trials[i].experiment = experiment.key;
        trials[i].index = i;
        trials[i].id = absl::StrCat("t", i);
        trials[i].pack = pack.key;
        trials[i].state = v1::CANCELLED;
      }
      ASSERT_TRUE(writer.InsertTrials(absl::MakeSpan(trials)).ok());
      for (const TrialRecord& trial : trials) {
        EventRecord event;
        event.experiment = experiment.key;
        event.trial = trial.key;
        event.kind = v1::Event::kLogLine;
        ASSERT_TRUE(writer.AppendEvent(event).ok());
      }
    }
    ASSERT_TRUE(writer.Commit().ok());
    ASSERT_TRUE(writer.Begin().ok());
    const auto large = writer.FindExperiment("large-1");
    ASSERT_TRUE(writer.DeleteExperiment((*large)->key).ok());
    ASSERT_TRUE(writer.Commit().ok());
    EXPECT_FALSE((*(*(*storage)->Read())->FindExperiment("large-1")).has_value());
    EXPECT_TRUE(*(*(*storage)->Read())->WasDeleted("large-1"));
    ASSERT_TRUE(*writer.CleanUp());
  }
  const int64_t left = count("SELECT count(*) FROM events");
  EXPECT_GT(left, kTrials);
  EXPECT_LT(left, 2 * kTrials);
  auto storage = OpenSqliteStorage(path);
  ASSERT_TRUE(storage.ok());
  const auto listed = (*(*storage)->Read())->ListExperiments(0, "", 10);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().id, "other-1");
  while (*(*storage)->writer().CleanUp()) {
  }
  EXPECT_EQ(count("SELECT count(*) FROM events"), kTrials);
  EXPECT_EQ(count("SELECT count(*) FROM trials"), kTrials);
  EXPECT_EQ(count("SELECT count(*) FROM packs"), 1);
  EXPECT_EQ(count("SELECT count(*) FROM experiments"), 1);
}

void StoreExperiment(const std::string& name, StorageWriter& writer) {
  ExperimentRecord experiment;
  experiment.name = name;
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
  ASSERT_TRUE(writer.Commit().ok());
}

TEST(SqliteStorageTest, FullDatabaseKeepsItsData) {
  auto storage = OpenSqliteStorage(NewPath("full"), {.max_bytes = 300'000});
  ASSERT_TRUE(storage.ok());
  StorageWriter& writer = (*storage)->writer();
  StoreExperiment("sort", writer);

  ASSERT_TRUE(writer.Begin().ok());
  ExperimentRecord large;
  large.name = "large";
  large.specification = std::string(1'000'000, 'x');
  EXPECT_EQ(writer.InsertExperiment(large).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(writer.Commit().code(), absl::StatusCode::kResourceExhausted);

  ASSERT_TRUE(writer.Begin().ok());
  EXPECT_TRUE((*writer.FindExperiment("sort-1")).has_value());
  EXPECT_FALSE((*writer.FindExperiment("large-1")).has_value());
  EXPECT_TRUE(writer.Commit().ok());
}

TEST(SqliteStorageTest, FailedWriteNamesTheSystemsErrorAndKeepsItsData) {
  // A limit of file sizes fails writes in the middle, like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  auto storage = OpenSqliteStorage(NewPath("limited"));
  ASSERT_TRUE(storage.ok());
  StorageWriter& writer = (*storage)->writer();
  StoreExperiment("sort", writer);

  const rlimit small = {.rlim_cur = 500'000, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  ExperimentRecord experiment;
  experiment.name = "large";
  experiment.specification = std::string(1'000'000, 'x');
  ASSERT_TRUE(writer.Begin().ok());
  writer.InsertExperiment(experiment).IgnoreError();
  const absl::Status failed = writer.Commit();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(failed.message()),
      AllOf(HasSubstr("limited.db"), HasSubstr("File too large"), HasSubstr("`ulimit -f`")));

  ASSERT_TRUE(writer.Begin().ok());
  EXPECT_TRUE((*writer.FindExperiment("sort-1")).has_value());
  EXPECT_FALSE((*writer.FindExperiment("large-1")).has_value());
  EXPECT_TRUE(writer.InsertExperiment(experiment).ok()) << "the disk works again";
  EXPECT_TRUE(writer.Commit().ok());
}

}  // namespace
}  // namespace lengthwise::server
