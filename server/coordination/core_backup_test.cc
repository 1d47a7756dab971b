// Backups made while the server works, and their restoration.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/testing/housekeeping_fixture.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using CoreBackupTest = CoreHousekeepingTest;

// A server would change the database, and the backup could not be restored any longer.
TEST_F(CoreBackupTest, BackupIsNoDataDirectory) {
  Create("weights", 1);
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  const std::string backup = coordinator_.data_dir() + "/backups/b";
  const std::string before = *platform::ReadFile(backup + "/lengthwise.db");
  TestCoordinator other(backup);
  const absl::Status status = other.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), backup +
                                  " is a backup, which a server would change; restore it first: "
                                  "`lengthwise_server --restore " +
                                  backup + " --data_dir NEW`");
  EXPECT_EQ(*platform::ReadFile(backup + "/lengthwise.db"), before);
  EXPECT_FALSE(std::filesystem::exists(backup + "/LOCK"));
}

TEST_F(CoreBackupTest, BackupHasAllEventsAcknowledgedBefore) {
  const std::string experiment = Create("weights", 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  std::atomic<int64_t> acknowledged = 3;
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    for (int64_t sequence = 4; !stop; ++sequence) {
      // Checkpoints in between make older ones due for deletion during the backup.
      if (sequence % 10 == 0) {
        const std::string bytes = absl::StrCat("checkpoint at ", sequence);
        const int64_t step = 30 + sequence;
        coordinator_.Upload(lease, 0, step, bytes).IgnoreError();
        coordinator_.Send(lease, {CheckpointEvent(lease, 0, sequence, step, bytes)}).IgnoreError();
      } else {
        coordinator_.Send(lease, {PointsEvent(lease, 0, sequence, sequence)}).IgnoreError();
      }
      acknowledged = sequence;
    }
  });
  while (acknowledged < 50) std::this_thread::yield();
  const int64_t before = acknowledged;
  // Tokens are part of the backup: a restored server must not be open to everyone.
  ASSERT_EQ(platform::WriteFileAtomically(coordinator_.data_dir() + "/tokens", "tokens"),
            absl::OkStatus());
  v1::BackUpRequest request;
  request.set_name("b");
  std::vector<v1::BackUpResponse> told;
  ASSERT_EQ(coordinator_->backups().BackUp(request,
                                           [&](const v1::BackUpResponse& response) {
                                             // The worker continues during the backup.
                                             const int64_t now = acknowledged;
                                             while (acknowledged < now + 25)
                                               std::this_thread::yield();
                                             told.push_back(response);
                                             return true;
                                           }),
            absl::OkStatus());
  stop = true;
  worker.join();
  const std::string path = coordinator_.data_dir() + "/backups/b";
  EXPECT_TRUE(told.back().complete());
  EXPECT_EQ(told.back().path(), path);
  EXPECT_EQ(told.back().copied_bytes(), told.back().total_bytes());
  EXPECT_EQ(told.back().copied_bytes(), coordinator_->backups().GetStorage()->backups(0).bytes());
  EXPECT_THAT(Artifacts(), SizeIs(2)) << "pending deletions have run";
  EXPECT_EQ(coordinator_->backups().BackUp(request, [](const auto&) { return true; }).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(coordinator_->backups().GetStorage()->backups_size(), 1);

  const std::string restored = NewDirectory();
  CoreOptions options;
  options.data_dir = restored;
  options.restore_from = path;
  Core::Dependencies dependencies;
  dependencies.resolve = ResolveSimply;
  {
    auto opened = Core::Open(options, dependencies);
    ASSERT_TRUE(opened.ok()) << opened.status();
  }
  EXPECT_EQ(platform::ReadFile(restored + "/tokens").value_or("none"), "tokens");
  EXPECT_EQ(std::filesystem::status(restored + "/tokens").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  TestCoordinator copy(restored);
  ASSERT_EQ(copy.Open(), absl::OkStatus());
  int64_t stored = 0;
  for (const v1::Event& event : copy.History(lease.trials(0).trial())) {
    if (event.sequence() > 0) {
      EXPECT_EQ(event.sequence(), ++stored);
    }
  }
  EXPECT_GE(stored, before);
  EXPECT_LT(stored, acknowledged) << "one moment, not the end";

  // The experiment continues to its end from a checkpoint.
  ASSERT_EQ(copy.Register("w2", 2), absl::OkStatus());
  copy.Advance(absl::Minutes(10));
  ASSERT_EQ(copy.Register("w2", 2), absl::OkStatus());
  for (v1::Lease next = copy.Acquire("w2"); next.trials_size() > 0; next = copy.Acquire("w2")) {
    EXPECT_GT(next.fencing_token(), lease.fencing_token() + 1'000'000);
    if (next.trials(0).trial() == lease.trials(0).trial()) {
      EXPECT_GE(next.trials(0).checkpoint_step(), 30);
      EXPECT_EQ(copy.Send(lease, {PointsEvent(lease, 0, stored + 1, 1)})->refusal(),
                v1::StreamEventsResponse::STALE_LEASE);
    }
    for (int trial = 0; trial < next.trials_size(); ++trial) {
      EXPECT_TRUE(copy.Complete(next, trial, 1'000'000, {1.0}));
    }
  }
  EXPECT_EQ(copy->reads().GetExperiment(experiment)->trials().succeeded(), 2);
  // A watcher that was ahead of the backup misses none of the new events.
  EXPECT_GT(copy.History(experiment).back().position(),
            coordinator_.History(experiment).back().position());
}

// Makes the backup `name`, and calls `meanwhile` once during it.
void BackUpWhile(TestCoordinator& coordinator, const std::string& name,
                 const std::function<void()>& meanwhile) {
  v1::BackUpRequest request;
  request.set_name(name);
  bool done = false;
  EXPECT_EQ(coordinator->backups().BackUp(request,
                                          [&](const v1::BackUpResponse&) {
                                            if (!std::exchange(done, true)) meanwhile();
                                            return true;
                                          }),
            absl::OkStatus());
  EXPECT_TRUE(done);
}

TEST_F(CoreBackupTest, RegressionBackupKeepsTheModelOfARetriedTrial) {
  const std::string experiment = Create("weights");
  Train(coordinator_.Acquire("w"));
  const auto retry = [&] {
    EXPECT_TRUE(coordinator_.Cancel(experiment).ok());
    EXPECT_EQ(coordinator_.Retry(experiment, {v1::CANCELLED})->retried_trials(), 1);
    return coordinator_.Acquire("w");
  };
  const auto store = [&](const v1::Lease& lease, int64_t sequence, int64_t step) {
    const std::string bytes = absl::StrCat("checkpoint at ", step);
    EXPECT_EQ(coordinator_.Upload(lease, 0, step, bytes), absl::OkStatus());
    return CheckpointEvent(lease, 0, sequence, step, bytes);
  };
  v1::Lease lease;
  v1::Event told;
  BackUpWhile(coordinator_, "first", [&] {
    lease = retry();
    ASSERT_THAT(lease.trials(), SizeIs(1));
    EXPECT_EQ(lease.trials(0).checkpoint_step(), 30);
    // Uploaded; its event is sent only after the backup.
    told = store(lease, 1, 40);
  });
  EXPECT_EQ(coordinator_.Send(lease, {told})->acknowledged_sequence(), 1);
  BackUpWhile(coordinator_, "second", [&] {
    coordinator_.Send(lease, {store(lease, 2, 50)}).IgnoreError();
    lease = retry();
    coordinator_.Send(lease, {store(lease, 1, 60)}).IgnoreError();
    End(lease, v1::Outcome::COMPLETED, 2, 60);
  });
  EXPECT_THAT(Artifacts(), ElementsAre("checkpoint at 60"));
}

TEST_F(CoreBackupTest, DamagedCheckpointIsLeftOut) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(coordinator_.artifacts_dir())) {
    if (entry.path().extension() != ".safetensors") continue;
    std::string bytes = platform::ReadFile(entry.path().string()).value();
    if (bytes != "checkpoint 3") continue;
    std::ofstream(entry.path()) << "Checkpoint 3";
  }
  testing::internal::CaptureStderr();
  BackUpWhile(coordinator_, "b", [] {});
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(HasSubstr("left out of the backup: "), HasSubstr(" INFO made the backup ")));
  EXPECT_THAT(Artifacts(coordinator_.data_dir() + "/backups/b/artifacts"),
              ElementsAre("checkpoint 2"));
}

TEST_F(CoreBackupTest, RegressionBackupKeepsAReusedCheckpoint) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  coordinator_->sweeper().Flush();
  BackUpWhile(coordinator_, "third", [&] {
    const std::string bytes = "checkpoint 4";
    EXPECT_EQ(coordinator_.Upload(lease, 0, 40, bytes), absl::OkStatus());
    // With this checkpoint the second one is due for deletion ...
    coordinator_.Send(lease, {CheckpointEvent(lease, 0, 4, 40, bytes)}).IgnoreError();
    coordinator_.Release("w", lease);
    const std::string directory = coordinator_.data_dir() + "/artifacts/sort-1/lr0-seed0/";
    for (const char* damaged : {"checkpoint 3", "checkpoint 4"}) {
      std::filesystem::remove(directory + platform::Sha256Hex(damaged) + ".safetensors");
    }
    // ... but now the trial resumes from it.
    EXPECT_EQ(coordinator_.Acquire("w").trials(0).checkpoint_step(), 20);
  });
  EXPECT_THAT(Artifacts(), ElementsAre("checkpoint 2"));
}

TEST_F(CoreBackupTest, CancelledBackupLeavesNoFiles) {
  v1::BackUpRequest request;
  request.set_name("b");
  EXPECT_TRUE(absl::IsCancelled(
      coordinator_->backups().BackUp(request, [](const v1::BackUpResponse&) { return false; })));
  EXPECT_TRUE(std::filesystem::is_empty(coordinator_.data_dir() + "/backups"));
  for (const char* name : {"../b", "B", ".b", "a/b", "-b"}) {
    request.set_name(name);
    EXPECT_TRUE(absl::IsInvalidArgument(
        coordinator_->backups().BackUp(request, [](const v1::BackUpResponse&) { return true; })))
        << name;
  }
}

TEST_F(CoreBackupTest, LastBackupIsKnownWithItsOutcome) {
  const auto statistics = [this] { return coordinator_->GetStatistics(); };
  EXPECT_EQ(statistics().last_backup_seconds, 0);
  EXPECT_FALSE(statistics().last_backup_failed);
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  const double made = statistics().last_backup_seconds;
  EXPECT_GT(made, 0);
  EXPECT_FALSE(statistics().last_backup_failed);
  EXPECT_TRUE(absl::IsAlreadyExists(coordinator_.BackUp("b")));
  EXPECT_EQ(statistics().last_backup_seconds, made);
  EXPECT_TRUE(statistics().last_backup_failed);
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BackUp("../b")));
  ASSERT_EQ(coordinator_.BackUp("c"), absl::OkStatus());
  EXPECT_FALSE(statistics().last_backup_failed);
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_GT(statistics().last_backup_seconds, 0) << "found in the directory";
}

TEST_F(CoreBackupTest, OldBackupsWithDefaultNamesAreDeleted) {
  ASSERT_EQ(coordinator_.BackUp("before-upgrade"), absl::OkStatus());
  const auto back_up = [&](int32_t keep, const std::string& name = "") {
    coordinator_.Advance(absl::Seconds(1));
    v1::BackUpRequest request;
    request.set_name(name);
    request.set_keep(keep);
    v1::BackUpResponse last;
    const absl::Status status =
        coordinator_->backups().BackUp(request, [&](const v1::BackUpResponse& response) {
          last = response;
          return true;
        });
    EXPECT_EQ(status.ok(), name.empty() && keep >= 0) << status;
    return last;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(back_up(0).deleted_size(), 0);
  EXPECT_EQ(back_up(2).deleted_size(), 2) << "the oldest";
  EXPECT_EQ(back_up(2).deleted_size(), 1);
  back_up(2, "named");
  back_up(-1);
  const auto storage = coordinator_->backups().GetStorage();
  ASSERT_EQ(storage->backups_size(), 3);
  EXPECT_EQ(storage->backups(2).name(), "before-upgrade") << "it has a name of its own";
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(coordinator_.data_dir() + "/backups"), {}),
      3);
}

TEST_F(CoreBackupTest, OneBackupAtATime) {
  v1::BackUpRequest request;
  int asked = 0;
  EXPECT_EQ(
      coordinator_->backups().BackUp(request,
                                     [&](const v1::BackUpResponse&) {
                                       v1::BackUpRequest another;
                                       another.set_name("another");
                                       if (++asked == 1) {
                                         EXPECT_TRUE(absl::IsAborted(coordinator_->backups().BackUp(
                                             another, [](const auto&) { return true; })));
                                       }
                                       return true;
                                     }),
      absl::OkStatus());
  EXPECT_GE(asked, 1);
}

TEST_F(CoreBackupTest, DamagedBackupIsRefusedByFileName) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  const std::string backup = coordinator_.data_dir() + "/backups/b";
  const std::string artifact = absl::StrCat(backup, "/artifacts/sort-1/lr0-seed0/",
                                            platform::Sha256Hex("checkpoint 3"), ".safetensors");
  const auto restore = [&](const std::string& from, const std::string& to) {
    CoreOptions options;
    options.data_dir = to;
    options.restore_from = from;
    Core::Dependencies dependencies;
    dependencies.resolve = ResolveSimply;
    return Core::Open(options, dependencies).status();
  };
  const std::string target = NewDirectory();
  EXPECT_TRUE(absl::IsNotFound(restore(backup + "_none", target)));
  EXPECT_TRUE(absl::IsFailedPrecondition(restore(backup, coordinator_.data_dir())));

  // Each copy is damaged differently.
  const auto damaged = [&](const std::string& what,
                           const std::function<void(const std::string&)>& damage) {
    const std::string copy = NewDirectory();
    std::filesystem::copy(backup, copy, std::filesystem::copy_options::recursive);
    const std::string file = what == "artifact" || what == "missing"
                                 ? copy + artifact.substr(backup.size())
                             : what == "database" ? copy + "/lengthwise.db"
                                                  : copy + "/manifest.json";
    damage(file);
    const absl::Status status = restore(copy, target);
    EXPECT_TRUE(absl::IsDataLoss(status)) << what << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    EXPECT_FALSE(std::filesystem::exists(target));
    EXPECT_FALSE(std::filesystem::exists(target + ".restoring"));
  };
  const auto overwrite = [](const std::string& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(8);
    stream << "X";
  };
  damaged("artifact", overwrite);
  damaged("database", overwrite);
  damaged("missing", [](const std::string& file) { std::filesystem::remove(file); });
  damaged("manifest", [](const std::string& file) { std::ofstream(file) << "{\"format\": 1}"; });
  damaged("escape", [](const std::string& file) {
    std::ifstream in(file);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    text.replace(text.find("\"sort-1\""), 8, "\"../../../x\"");
    std::ofstream(file) << text;
  });
  EXPECT_EQ(restore(backup, target), absl::OkStatus()) << "the undamaged one is good";
}

TEST_F(CoreBackupTest, RestoredServerReusesNoIds) {
  EXPECT_EQ(coordinator_.Create("sort", 1, 1), "experiments/sort-1");
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  std::set<std::string> given = {"experiments/sort-1", coordinator_.Create("sort", 1, 1),
                                 coordinator_.Create("new", 1, 1)};
  // A second copy of the same backup gets other ids as well.
  for (int copies = 0; copies < 2; ++copies) {
    TestCoordinator copy;
    copy.options().restore_from = coordinator_.data_dir() + "/backups/b";
    ASSERT_EQ(copy.Open(), absl::OkStatus());
    EXPECT_TRUE(copy->reads().GetExperiment("experiments/sort-1").ok());
    for (const char* name : {"sort", "new", "sort"}) {
      const std::string id = copy.Create(name, 1, 1);
      EXPECT_THAT(
          id, testing::MatchesRegex(absl::StrCat("experiments/", name, "-[0-9]+\\.[0-9a-f]{6}")));
      EXPECT_TRUE(given.insert(id).second) << id;
    }
    // The copy knows the experiment that it deleted and finishes its deletion at the next start.
    const std::string deleted = copy.Create("sort", 1, 1);
    ASSERT_TRUE(copy.Cancel(deleted).ok());
    ASSERT_EQ(copy.Delete(deleted), absl::OkStatus());
    const std::string left =
        copy.data_dir() + "/artifacts/" + deleted.substr(std::string("experiments/").size());
    std::filesystem::create_directories(left + "/trial");
    std::filesystem::create_directories(left + "0/trial");  // another server's
    copy.Close();
    copy.options().restore_from.clear();
    ASSERT_EQ(copy.Open(), absl::OkStatus());
    copy->sweeper().Flush();
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(left + "0/trial"));
  }
}

TEST_F(CoreBackupTest, StartDeletesUnfinishedBackups) {
  const std::string left = coordinator_.data_dir() + "/backups/.unfinished-b";
  std::filesystem::create_directories(left);
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(left));
}

}  // namespace
}  // namespace lengthwise::server
