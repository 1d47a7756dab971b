// Behaviour when processes die, disks fill up, files are damaged and many callers compete.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/sqlite_connection.h"

namespace lengthwise::server {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

TEST(CoreFaultsTest, AcknowledgedEventsSurviveSigkill) {
  const std::string directory = NewDirectory();
  int acknowledgements[2];
  ASSERT_EQ(pipe(acknowledgements), 0);
  const pid_t child = fork();
  if (child == 0) {
    TestCoordinator coordinator(directory);
    if (!coordinator.Open().ok() || !coordinator.Register("w", 100).ok()) _exit(1);
    coordinator.Create("sort", 1, 1);
    const v1::Lease lease = coordinator.Acquire("w");
    // The state of a worker that outlives its server.
    std::ofstream(directory + ".lease") << lease.SerializeAsString();
    for (int64_t sequence = 1;; ++sequence) {
      const auto response = coordinator.Send(lease, {PointsEvent(lease, 0, sequence, sequence)});
      const int64_t acknowledged = response.ok() ? response->acknowledged_sequence() : 0;
      if (write(acknowledgements[1], &acknowledged, sizeof(acknowledged)) < 0) _exit(1);
    }
  }
  int64_t acknowledged = 0;
  while (acknowledged < 50) {
    ASSERT_EQ(read(acknowledgements[0], &acknowledged, sizeof(acknowledged)),
              static_cast<ssize_t>(sizeof(acknowledged)));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(acknowledgements[1]);
  for (int64_t more = 0; read(acknowledgements[0], &more, sizeof(more)) > 0;) acknowledged = more;

  TestCoordinator coordinator(directory);
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  int64_t stored = 0;
  for (const v1::Event& event : coordinator.History("experiments/sort-1")) {
    if (event.sequence() > 0) {
      EXPECT_EQ(event.sequence(), ++stored);
    }
  }
  EXPECT_GE(stored, acknowledged);
  // The lease survives: the worker registers again and continues.
  EXPECT_EQ(coordinator->GetStatistics().leases, 1);
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  v1::Lease lease;
  std::ifstream file(directory + ".lease");
  ASSERT_TRUE(lease.ParseFromIstream(&file));
  EXPECT_FALSE(coordinator.Heartbeat("w", {lease})->leases(0).lost());
  EXPECT_EQ(coordinator.Send(lease, {PointsEvent(lease, 0, stored + 1, stored + 1)})
                ->acknowledged_sequence(),
            stored + 1);
}

TEST(CoreFaultsTest, RestartKeepsBackOffsTokensAndCancellations) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w", 2), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 2, 2);
  const v1::Lease lease = coordinator.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(2));
  coordinator
      .Send(lease, {OutcomeEvent(lease, 0, 1, 0, v1::Outcome::FAILED_TEMPORARILY, "no memory")})
      .IgnoreError();
  ASSERT_TRUE(coordinator.CancelTrial(lease.trials(1).trial()).ok());

  coordinator.Close();
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w", 2), absl::OkStatus());
  EXPECT_THAT(coordinator->reads().GetTrial(lease.trials(0).trial())->reason(),
              HasSubstr("after failure 1 of 3"));
  EXPECT_EQ(coordinator.Heartbeat("w", {lease})->leases(0).cancelled_trials(0),
            lease.trials(1).trial());
  const v1::Lease next = coordinator.Acquire("w");
  EXPECT_GT(next.fencing_token(), lease.fencing_token());
  EXPECT_EQ(next.trials(0).trial(), experiment + "/trials/lr1-seed0");
  EXPECT_THAT(coordinator.Acquire("w").trials(), SizeIs(0));
  coordinator.Advance(absl::Seconds(3));
  EXPECT_EQ(coordinator.Acquire("w").trials(0).attempt(), 2);
}

// Regression: after a restart no scheduler knew the lease, and its row stayed for good.
TEST(CoreFaultsTest, RegressionLeaseOfADeletedExperimentEndsAfterARestart) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w", 2), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 1, 2);
  ASSERT_THAT(coordinator.Acquire("w").trials(), SizeIs(2));
  ASSERT_TRUE(coordinator.Cancel(experiment).ok());
  ASSERT_EQ(coordinator.Delete(experiment), absl::OkStatus());
  const auto count = [&](const char* sql) {
    auto database = SqliteConnection::Open(coordinator.data_dir() + "/lengthwise.db", true);
    SqliteStatement query = (*database)->Query(sql);
    return query.Step() ? query.Int(0) : -1;
  };
  const auto leases = [&] { return count("SELECT count(*) FROM leases"); };
  // The idle server deletes the experiment's rows.
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (count("SELECT count(*) FROM trials") != 0 && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(1));
  coordinator.Close();
  EXPECT_EQ(leases(), 1) << "it ends when its worker hears of the cancellation";
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  coordinator.Create("another", 1, 1);
  EXPECT_EQ(leases(), 0);
}

// A store that cannot begin a transaction while `fails` is set, and then calls `failed`. It writes
// through a connection of its own.
class FailingStorage final : public Storage {
 public:
  FailingStorage(std::unique_ptr<Storage> storage, const std::string& path,
                 const std::atomic<bool>& fails, std::function<void()> failed = nullptr)
      : storage_(std::move(storage)),
        connection_(SqliteConnection::Open(path, /*read_only=*/false).value()),
        writer_(*connection_, fails, std::move(failed)) {}
  StorageWriter& writer() override { return writer_; }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override { return storage_->Read(); }
  int64_t SizeBytes() const override { return storage_->SizeBytes(); }
  const LeaseKey& lease_key() const override { return storage_->lease_key(); }

 private:
  class Writer final : public StorageWriter {
   public:
    Writer(SqliteConnection& connection, const std::atomic<bool>& fails,
           std::function<void()> failed)
        : StorageWriter(connection, /*epoch=*/1, [](const absl::Status&) {}),
          fails_(fails),
          failed_(std::move(failed)) {}
    absl::Status Begin() override {
      if (!fails_) return StorageWriter::Begin();
      if (failed_) failed_();
      return absl::UnavailableError("the disk is away");
    }

   private:
    const std::atomic<bool>& fails_;
    const std::function<void()> failed_;
  };

  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<SqliteConnection> connection_;
  Writer writer_;
};

// The deadline of a waiting call has passed and cannot be served: without a pause, the loop would
// try again at once, for ever. It waits in real time, so the clock runs.
TEST(CoreFaultsTest, FailingStoreIsTriedOnceASecond) {
  std::atomic<bool> fails = false;
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> failures;  // used by the loop's thread until the lease is answered
  std::promise<void> failed_twice;
  TestCoordinator coordinator;
  coordinator.set_wrap_storage([&](std::unique_ptr<Storage> storage) {
    return std::make_unique<FailingStorage>(std::move(storage),
                                            coordinator.data_dir() + "/lengthwise.db", fails, [&] {
                                              failures.push_back(Clock::now());
                                              if (failures.size() == 2) failed_twice.set_value();
                                            });
  });
  coordinator.RunClock();
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  std::latch busy(1), both_wait(1);
  PostCall(*coordinator, {}, "anonymous", [&](const absl::StatusOr<v1::SynchronizeResponse>&) {
    busy.count_down();
    both_wait.wait();
  });
  busy.wait();
  v1::SynchronizeRequest request = coordinator.CallOf("w");
  request.set_wants_lease(true);
  request.mutable_wait()->set_nanos(500'000'000);
  auto lease = coordinator.Later(request);
  // In the same group: the call waits, and the store fails from then on.
  coordinator->loop().PostCommand({.apply = [&]() -> CommandLoop::Answer {
                                     fails = true;
                                     return nullptr;
                                   },
                                   .fail = [](const absl::Status&) {}});
  both_wait.count_down();
  ASSERT_EQ(failed_twice.get_future().wait_for(std::chrono::seconds(30)),
            std::future_status::ready);
  fails = false;
  EXPECT_EQ(lease.get()->no_lease_reason(), "no trials are queued") << "the loop goes on by itself";
  for (size_t i = 1; i < failures.size(); ++i) {
    EXPECT_GE(failures[i] - failures[i - 1], std::chrono::seconds(1)) << i;
  }
  EXPECT_EQ(coordinator->GetStatistics().commit_failures, std::ssize(failures));
}

// A full disk: no lease can be stored, so no trial ever runs.
TEST(CoreFaultsTest, QueuedTrialsNameTheStoresFault) {
  std::atomic<bool> fails = false;
  TestCoordinator coordinator;
  coordinator.set_wrap_storage([&](std::unique_ptr<Storage> storage) {
    return std::make_unique<FailingStorage>(std::move(storage),
                                            coordinator.data_dir() + "/lengthwise.db", fails);
  });
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 1, 1);
  const std::string trial = experiment + "/trials/lr0-seed0";
  EXPECT_EQ(coordinator->reads().GetExperiment(experiment)->storage_fault(), "");
  fails = true;
  v1::CreateExperimentRequest another;
  another.mutable_specification()->set_name("another");
  another.mutable_specification()->add_learning_rates(0.1);
  another.mutable_specification()->add_seeds(0);
  EXPECT_TRUE(absl::IsUnavailable(coordinator.TryCreate(another).status()));
  const auto says = HasSubstr("cannot store its progress: the disk is away");
  EXPECT_THAT(coordinator->reads().GetExperiment(experiment)->storage_fault(), says);
  EXPECT_THAT(coordinator->reads().GetTrial(trial)->reason(), says);
  fails = false;
  EXPECT_EQ(coordinator.TryCreate(another).status(), absl::OkStatus());
  EXPECT_EQ(coordinator->reads().GetExperiment(experiment)->storage_fault(), "");
}

// A file that exists but cannot be read, even by root: a link to itself replaces it during this
// object's lifetime.
class Unreadable {
 public:
  explicit Unreadable(std::string path) : path_(std::move(path)) {
    std::filesystem::rename(path_, path_ + "_aside");
    std::filesystem::create_symlink(path_, path_);
  }
  ~Unreadable() { std::filesystem::rename(path_ + "_aside", path_); }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

 private:
  const std::string path_;
};

// Path of the artifact of a lease's trial.
std::string ArtifactOf(TestCoordinator& coordinator, const std::string& trial,
                       const std::string& bytes) {
  std::string path = trial.substr(std::string("experiments/").size());
  path.replace(path.find("/trials"), 7, "");
  return absl::StrCat(coordinator.artifacts_dir(), "/", path, "/", platform::Sha256Hex(bytes),
                      ".safetensors");
}

// Fixture of tests whose store fails while `fails_` is set.
class CoreFailingStoreTest : public testing::Test {
 protected:
  CoreFailingStoreTest() {
    coordinator_.set_wrap_storage([this](std::unique_ptr<Storage> storage) {
      return std::make_unique<FailingStorage>(std::move(storage),
                                              coordinator_.data_dir() + "/lengthwise.db", fails_);
    });
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  std::atomic<bool> fails_ = false;
  TestCoordinator coordinator_;
};

TEST_F(CoreFailingStoreTest, ErrorSaysThatAPartWasStored) {
  const std::string experiment = coordinator_.Create("sort", 1, 1000);
  std::latch busy(1), both_wait(1);
  PostCall(*coordinator_, {}, "anonymous", [&](const absl::StatusOr<v1::SynchronizeResponse>&) {
    busy.count_down();
    both_wait.wait();
  });
  busy.wait();
  v1::CancelExperimentRequest request;
  request.set_name(experiment);
  std::promise<absl::Status> cancelled;
  PostCancel(*coordinator_, request, "ada", [&](const absl::StatusOr<v1::Experiment>& answer) {
    cancelled.set_value(answer.status());
  });
  // Runs after the first part and before the second.
  coordinator_->loop().PostCommand({.apply = [&]() -> CommandLoop::Answer {
                                      fails_ = true;
                                      return nullptr;
                                    },
                                    .fail = [](const absl::Status&) {}});
  both_wait.count_down();
  const absl::Status status = cancelled.get_future().get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("only a part was stored: the disk is away; try again"));
  fails_ = false;
  const int32_t done = coordinator_->reads().GetExperiment(experiment)->trials().cancelled();
  EXPECT_THAT(done, AllOf(Ge(1), Le(999)));
  EXPECT_EQ(coordinator_.Cancel(experiment)->trials().cancelled(), 1000);
}

TEST_F(CoreFailingStoreTest, DeferredDeletionOutlivesAFailedCommit) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  const auto checkpoint = [&](int64_t number) {
    const std::string bytes = absl::StrCat("weights ", number);
    EXPECT_EQ(coordinator_.Upload(lease, 0, number * 10, bytes), absl::OkStatus());
    const auto sent =
        coordinator_.Send(lease, {CheckpointEvent(lease, 0, number, number * 10, bytes)});
    EXPECT_EQ(sent->acknowledged_sequence(), number);
  };
  checkpoint(1);
  checkpoint(2);
  v1::BackUpRequest request;
  bool done = false;
  EXPECT_EQ(coordinator_->backups().BackUp(request,
                                           [&](const v1::BackUpResponse&) {
                                             if (!std::exchange(done, true)) checkpoint(3);
                                             fails_ = true;
                                             return true;
                                           }),
            absl::OkStatus());
  // The file is deleted although its record cannot be, which is tried again.
  EXPECT_FALSE(
      std::filesystem::exists(ArtifactOf(coordinator_, lease.trials(0).trial(), "weights 1")));
  const auto records = [&] {
    const auto connection =
        SqliteConnection::Open(coordinator_.data_dir() + "/lengthwise.db", /*read_only=*/true);
    SqliteStatement query = (*connection)->Query("SELECT count(*) FROM sweeps");
    return query.Step() ? query.Int(0) : -1;
  };
  EXPECT_EQ(records(), 1);
  fails_ = false;
  coordinator_->sweeper().Flush();
  EXPECT_EQ(records(), 0);
}

TEST(CoreFaultsTest, UnreadableCheckpointDelaysItsTrial) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 1, 2);
  const v1::Lease lease = coordinator.Acquire("w");
  const std::string trial = lease.trials(0).trial();
  for (const int64_t step : {10, 20}) {
    const std::string bytes = absl::StrCat("weights of step ", step);
    ASSERT_EQ(coordinator.Upload(lease, 0, step, bytes), absl::OkStatus());
    coordinator
        .Send(lease, {PointsEvent(lease, 0, step / 5 - 1, step),
                      CheckpointEvent(lease, 0, step / 5, step, bytes)})
        .IgnoreError();
  }
  coordinator.Release("w", lease);
  const size_t stored = coordinator.History(trial).size();
  const auto expect_waiting_for = [&](const std::string& step) {
    coordinator.Advance(absl::Seconds(6));
    const v1::Lease other = coordinator.Acquire("w");
    ASSERT_THAT(other.trials(), SizeIs(1)) << "the others do not wait";
    EXPECT_NE(other.trials(0).trial(), trial);
    EXPECT_THAT(coordinator.Acquire("w").trials(), SizeIs(0));
    EXPECT_THAT(coordinator->reads().GetTrial(trial)->reason(),
                AllOf(HasSubstr("waits 5s more: the checkpoint of step " + step),
                      HasSubstr("cannot be read now"), HasSubstr("symbolic links")));
    EXPECT_EQ(coordinator.History(trial).size(), stored);
    coordinator.Release("w", other);
  };
  const std::string newest = ArtifactOf(coordinator, trial, "weights of step 20");
  {
    const Unreadable unreadable(newest);
    expect_waiting_for("20");
    expect_waiting_for("20");
  }
  // If the newest is lost, the previous one may be intact.
  const Unreadable unreadable(ArtifactOf(coordinator, trial, "weights of step 10"));
  std::filesystem::rename(newest, newest + "_away");
  expect_waiting_for("10");
  std::filesystem::rename(newest + "_away", newest);

  coordinator.Advance(absl::Seconds(6));
  int64_t resumed = -1;
  for (v1::Lease next = coordinator.Acquire("w"); next.trials_size() > 0;
       next = coordinator.Acquire("w")) {
    if (next.trials(0).trial() == trial) resumed = next.trials(0).checkpoint_step();
  }
  EXPECT_EQ(resumed, 20);
}

TEST(CoreFaultsTest, UnreadableDiskDelaysOnlyReads) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 20, 1);
  std::vector<std::unique_ptr<Unreadable>> unreadable;
  std::vector<v1::Lease> leases;
  for (int i = 0; i < 20; ++i) {
    leases.push_back(coordinator.Acquire("w"));
    const std::string trial = leases.back().trials(0).trial();
    ASSERT_EQ(coordinator.Upload(leases.back(), 0, 10, "weights"), absl::OkStatus());
    coordinator.Send(leases.back(), {CheckpointEvent(leases.back(), 0, 1, 10, "weights")})
        .IgnoreError();
    unreadable.push_back(std::make_unique<Unreadable>(ArtifactOf(coordinator, trial, "weights")));
  }
  for (const v1::Lease& lease : leases) coordinator.Release("w", lease);
  const std::string fresh = coordinator.Create("fresh", 1, 1) + "/trials/lr0-seed0";
  int asked = 0;
  v1::Lease lease;
  for (; asked < 20 && lease.trials().empty(); ++asked) lease = coordinator.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  EXPECT_EQ(lease.trials(0).trial(), fresh);
  EXPECT_EQ(asked, 3) << "eight are read for each request";
  EXPECT_EQ(coordinator->reads().GetExperiment(experiment)->trials().queued(), 20);
  unreadable.clear();
  coordinator.Advance(absl::Seconds(6));
  EXPECT_EQ(coordinator.Acquire("w").trials(0).checkpoint_step(), 10);
}

TEST(CoreFaultsTest, UnreadableUploadIsRetriedWithoutFailure) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  coordinator.Create("sort", 1, 1);
  const v1::Lease lease = coordinator.Acquire("w");
  ASSERT_EQ(coordinator.Upload(lease, 0, 10, "weights"), absl::OkStatus());
  const v1::Event event = CheckpointEvent(lease, 0, 1, 10, "weights");
  {
    const Unreadable unreadable(ArtifactOf(coordinator, lease.trials(0).trial(), "weights"));
    const absl::Status status = coordinator.Send(lease, {event}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(platform::Sha256Hex("weights")));
  }
  EXPECT_EQ(coordinator.Send(lease, {event})->acknowledged_sequence(), 1);
}

TEST(CoreFaultsTest, FullDiskLosesNothingAndWorkContinues) {
  const std::string directory = NewDirectory();
  {
    TestCoordinator small(directory, /*max_database_bytes=*/400'000);
    ASSERT_EQ(small.Open(), absl::OkStatus());
    ASSERT_EQ(small.Register("w"), absl::OkStatus());
    small.Create("sort", 1, 1);
    v1::CreateExperimentRequest request;
    request.mutable_specification()->set_name("large");
    request.mutable_specification()->add_learning_rates(0.1);
    for (int seed = 0; seed < 5000; ++seed) request.mutable_specification()->add_seeds(seed);
    const absl::Status status = small.TryCreate(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
    // The scheduler forgot it as well, and everything else works.
    EXPECT_EQ(small->GetStatistics().trials.queued(), 1);
    const v1::Lease lease = small.Acquire("w");
    EXPECT_EQ(lease.trials(0).trial(), "experiments/sort-1/trials/lr0-seed0");
    EXPECT_THAT(small.Acquire("w").trials(), SizeIs(0));
    EXPECT_EQ(small.Send(lease, {PointsEvent(lease, 0, 1, 1)})->acknowledged_sequence(), 1);
  }
  TestCoordinator coordinator(directory);
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  EXPECT_EQ(coordinator.Create("large", 1, 5000), "experiments/large-1");
}

// Its commits fail for lack of space while `is_full`.
class FullStorage final : public Storage {
 public:
  FullStorage(std::unique_ptr<Storage> storage, const std::string& path,
              std::function<bool()> is_full)
      : storage_(std::move(storage)),
        connection_(SqliteConnection::Open(path, /*read_only=*/false).value()),
        writer_(*connection_, std::move(is_full)) {}
  StorageWriter& writer() override { return writer_; }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override { return storage_->Read(); }
  int64_t SizeBytes() const override { return storage_->SizeBytes(); }
  const LeaseKey& lease_key() const override { return storage_->lease_key(); }

 private:
  class Writer final : public StorageWriter {
   public:
    Writer(SqliteConnection& connection, std::function<bool()> is_full)
        : StorageWriter(connection, /*epoch=*/1, [](const absl::Status&) {}),
          is_full_(std::move(is_full)) {}
    absl::Status Commit() override {
      if (!HasChanges() || !is_full_()) return StorageWriter::Commit();
      return absl::ResourceExhaustedError("disk full: no page");
    }

   private:
    const std::function<bool()> is_full_;
  };

  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<SqliteConnection> connection_;
  Writer writer_;
};

TEST(CoreFaultsTest, FullDiskHasRoomForDeletions) {
  std::atomic<bool> full = false;
  TestCoordinator coordinator;
  coordinator.options().reserve_bytes = 1 << 20;
  const std::string reserve = coordinator.data_dir() + "/RESERVE";
  coordinator.set_measure_disk([&](const std::string&) -> absl::StatusOr<platform::DiskSpace> {
    const int64_t free = !full ? int64_t{1} << 40 : std::filesystem::exists(reserve) ? 0 : 1 << 20;
    return platform::DiskSpace{.free_bytes = free, .size_bytes = int64_t{1} << 40};
  });
  coordinator.set_wrap_storage([&](std::unique_ptr<Storage> storage) {
    return std::make_unique<FullStorage>(std::move(storage),
                                         coordinator.data_dir() + "/lengthwise.db",
                                         [&] { return full && std::filesystem::exists(reserve); });
  });
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  const std::string ended = coordinator.Create("ended", 1, 1);
  ASSERT_TRUE(coordinator.Cancel(ended).ok());
  const std::string experiment = coordinator.Create("sort", 2, 1);
  const v1::Lease lease = coordinator.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  EXPECT_EQ(std::filesystem::file_size(reserve), 1u << 20);
  EXPECT_FALSE(coordinator->GetStatistics().disk_full);

  full = true;
  v1::DeleteExperimentRequest request;
  request.set_name(ended);
  std::promise<absl::Status> deleted;
  coordinator->loop().Post<v1::DeleteExperimentResponse>(
      [&] { return coordinator->experiments().Delete(request); },
      [&](const auto& response) { deleted.set_value(response.status()); }, /*bytes=*/0,
      /*call_bytes=*/1, /*frees_space=*/true);
  EXPECT_EQ(deleted.get_future().get(), absl::OkStatus()) << "at the first attempt";
  EXPECT_FALSE(std::filesystem::exists(reserve));
  EXPECT_TRUE(coordinator->GetStatistics().disk_full);
  // What brings new data would use the space up.
  const absl::Status sent = coordinator.Send(lease, {PointsEvent(lease, 0, 1, 1)}).status();
  EXPECT_EQ(sent.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(sent.message()), StartsWith("nothing was stored: disk full: "));
  EXPECT_EQ(coordinator.Upload(lease, 0, 10, "weights").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(coordinator.BackUp("b").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(coordinator.Acquire("w").trials(), SizeIs(0));
  EXPECT_THAT(coordinator->reads().GetTrial(lease.trials(0).trial())->reason(),
              HasSubstr("disk full"));
  EXPECT_TRUE(coordinator.Heartbeat("w", {lease}).ok());

  full = false;
  coordinator->loop().Flush();
  EXPECT_TRUE(std::filesystem::exists(reserve));
  EXPECT_FALSE(coordinator->GetStatistics().disk_full);
  EXPECT_EQ(coordinator.Send(lease, {PointsEvent(lease, 0, 1, 1)})->acknowledged_sequence(), 1);
  EXPECT_THAT(coordinator.Acquire("w").trials(), SizeIs(1));
}

TEST(CoreFaultsTest, CheckpointThatFindsNoSpaceIsAFullDisk) {
  TestCoordinator coordinator;
  coordinator.options().reserve_bytes = 1 << 10;
  std::atomic<int64_t> free = int64_t{1} << 40;
  coordinator.set_measure_disk([&](const std::string&) -> absl::StatusOr<platform::DiskSpace> {
    return platform::DiskSpace{.free_bytes = free, .size_bytes = int64_t{1} << 40};
  });
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  coordinator.Create("sort", 1, 1);
  const v1::Lease lease = coordinator.Acquire("w");
  const std::string bytes(size_t{4} << 20, 'w');
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  struct rlimit small = limit;
  small.rlim_cur = bytes.size() - 1;
  const auto upload = [&] {
    setrlimit(RLIMIT_FSIZE, &small);
    const absl::Status status = coordinator.Upload(lease, 0, 10, bytes);
    setrlimit(RLIMIT_FSIZE, &limit);
    coordinator->loop().Flush();
    return status.code();
  };
  EXPECT_EQ(upload(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(coordinator->GetStatistics().disk_full) << "only this file is too large";
  free = 0;
  EXPECT_EQ(upload(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(coordinator->GetStatistics().disk_full);

  free = int64_t{1} << 40;
  coordinator->loop().Flush();
  EXPECT_FALSE(coordinator->GetStatistics().disk_full);
  EXPECT_EQ(coordinator.Upload(lease, 0, 10, bytes), absl::OkStatus());
  free = 0;
  coordinator->loop().Flush();
  EXPECT_FALSE(coordinator->GetStatistics().disk_full) << "the last checkpoint found space";
}

TEST(CoreFaultsTest, SecondServerOnADirectoryIsRefused) {
  const std::string directory = NewDirectory();
  TestCoordinator first(directory);
  ASSERT_EQ(first.Open(), absl::OkStatus());
  TestCoordinator second(directory);
  const absl::Status status = second.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another server"));
  first.Close();
  EXPECT_EQ(second.Open(), absl::OkStatus());
}

// People delete "stale" lock files.
TEST(CoreFaultsTest, SecondServerWithoutTheLockEndsTheFirst) {
  const std::string directory = NewDirectory();
  TestCoordinator first(directory);
  ASSERT_EQ(first.Open(), absl::OkStatus());
  ASSERT_EQ(first.Register("w"), absl::OkStatus());
  const std::string experiment = first.Create("sort", 1, 1);
  const v1::Lease lease = first.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  std::filesystem::remove(directory + "/LOCK");
  // A directory of artifacts that several servers reach has a lock of its own.
  std::filesystem::remove(directory + ".store/lengthwise_store.lock");
  TestCoordinator second(directory);
  second.options().release_leases = true;
  ASSERT_EQ(second.Open(), absl::OkStatus());
  // The worker ends the trial at the first server, which must not accept it: the second one runs
  // the trial again.
  EXPECT_FALSE(first.Complete(lease, 0, 100, {1}));
  EXPECT_THAT(std::string(first.lost().message()),
              HasSubstr("another server has opened this database since"));
  EXPECT_FALSE(first.Heartbeat("w", {lease}).ok());
  ASSERT_EQ(second.Register("next"), absl::OkStatus());
  const v1::Lease again = second.Acquire("next");
  ASSERT_THAT(again.trials(), SizeIs(1));
  EXPECT_TRUE(second.Complete(again, 0, 100, {1}));
  EXPECT_EQ(second->reads().GetExperiment(experiment)->trials().succeeded(), 1);
  EXPECT_EQ(second.lost(), absl::OkStatus());
}

TEST(CoreFaultsTest, UnopenableLockIsItsOwnError) {
  const std::string directory = NewDirectory();
  std::filesystem::create_directories(directory + "/LOCK");
  TestCoordinator coordinator(directory);
  const absl::Status status = coordinator.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory + "/LOCK: Is a directory"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("another server")));
}

TEST(CoreFaultsTest, DamagedDatabaseIsNamedAndUnchanged) {
  const std::string directory = NewDirectory();
  ASSERT_EQ(platform::CreateDirectories(directory), absl::OkStatus());
  const std::string path = directory + "/lengthwise.db";
  std::ofstream(path) << std::string(10'000, 'x');
  TestCoordinator coordinator(directory);
  const absl::Status status = coordinator.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_EQ(*platform::ReadFile(path), std::string(10'000, 'x'));
}

TEST(CoreFaultsTest, ConcurrentWorkersEndEveryTrialOnce) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 20, 20);
  std::atomic<int> ended = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 6; ++i) {
    workers.emplace_back([&, name = absl::StrCat("w", i)] {
      EXPECT_EQ(coordinator.Register(name, 3), absl::OkStatus());
      for (v1::Lease lease = coordinator.Acquire(name); lease.trials_size() > 0;
           lease = coordinator.Acquire(name)) {
        for (int trial = 0; trial < lease.trials_size(); ++trial) {
          std::vector<v1::Event> events = coordinator.Completion(lease, trial, 3, 10);
          events.insert(events.begin(),
                        {PointsEvent(lease, trial, 1, 5), PointsEvent(lease, trial, 2, 10)});
          const auto response = coordinator.Send(lease, events);
          EXPECT_TRUE(response.ok() && response->acknowledged_sequence() == 4);
          EXPECT_TRUE(coordinator->reads().GetTrial(lease.trials(trial).trial()).ok());
          ++ended;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(ended, 400);
  EXPECT_EQ(coordinator->reads().GetExperiment(experiment)->trials().succeeded(), 400);
  const std::vector<v1::Event> history = coordinator.History(experiment);
  EXPECT_EQ(history.size(), 400u * 6);
  std::set<std::pair<std::string, int64_t>> seen;
  for (const v1::Event& event : history) {
    if (event.sequence() > 0) {
      EXPECT_TRUE(seen.insert({event.trial(), event.sequence()}).second);
    }
  }
}

TEST(CoreFaultsTest, StoppedCoordinatorAnswersUnavailable) {
  TestCoordinator coordinator;
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w"), absl::OkStatus());
  v1::SynchronizeRequest request = coordinator.CallOf("w");
  request.set_wants_lease(true);
  request.mutable_wait()->set_seconds(60);
  auto waiting = coordinator.Later(request);
  coordinator->Stop();
  EXPECT_EQ(waiting.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(coordinator.Register("w").code(), absl::StatusCode::kUnavailable);
}

// Commands that wait for a hanging disk must not fill the memory.
TEST(CoreFaultsTest, QueuedCommandsAreBounded) {
  CoreOptions options;
  options.data_dir = NewDirectory();
  Core::Dependencies dependencies;
  dependencies.resolve = ResolveSimply;
  dependencies.max_queued_bytes = 20'000;
  const auto coordinator = Core::Open(options, dependencies).value();
  v1::StreamEventsRequest request;
  request.add_events()->set_trial(std::string(12'000, 'x'));
  std::latch busy(1), released(1), all(3);
  // Answers run on the command loop's thread: while one blocks, nothing is stored.
  PostCall(*coordinator, {}, "anonymous", [&](const absl::StatusOr<v1::SynchronizeResponse>&) {
    busy.count_down();
    released.wait();
  });
  busy.wait();
  absl::Status first, beyond, small;
  PostEvents(*coordinator, request, "anonymous",
             [&](const absl::StatusOr<v1::StreamEventsResponse>& answer) {
               first = answer.status();
               all.count_down();
             });
  PostEvents(*coordinator, request, "anonymous",
             [&](const absl::StatusOr<v1::StreamEventsResponse>& answer) {
               beyond = answer.status();
               all.count_down();
             });
  EXPECT_EQ(beyond.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(beyond.message()), HasSubstr("try again"));
  PostCall(*coordinator, {}, "anonymous",
           [&](const absl::StatusOr<v1::SynchronizeResponse>& answer) {
             small = answer.status();
             all.count_down();
           });
  v1::SynchronizeRequest large;
  large.set_session(std::string(8'000, 'x'));
  absl::Status refused;
  PostCall(
      *coordinator, large, "anonymous",
      [&](const absl::StatusOr<v1::SynchronizeResponse>& answer) { refused = answer.status(); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  released.count_down();
  all.wait();
  EXPECT_EQ(first, absl::OkStatus());
  EXPECT_EQ(small.code(), absl::StatusCode::kFailedPrecondition) << "taken: it has no session";

  std::latch again(1);
  PostEvents(*coordinator, request, "anonymous",
             [&](const absl::StatusOr<v1::StreamEventsResponse>& answer) {
               EXPECT_EQ(answer.status(), absl::OkStatus()) << "there is room again";
               again.count_down();
             });
  again.wait();
}

}  // namespace
}  // namespace lengthwise::server
