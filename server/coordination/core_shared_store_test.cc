// A server whose checkpoints are in a directory of their own (--artifacts): who may use it, and
// what happens while it is not mounted.
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/testing/housekeeping_fixture.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Without double slashes, as errors print paths.
std::string Normal(const std::string& path) { return fs::path(path).lexically_normal().string(); }

class CoreSharedStoreTest : public CoreHousekeepingTest {
 protected:
  CoreSharedStoreTest() : store_(Normal(NewDirectory() + ".shared")) {
    fs::remove_all(store_);
    Reopen(store_);
  }

  absl::Status TryOpen(TestCoordinator& coordinator, const std::string& store) {
    coordinator.Close();
    coordinator.options().artifacts = store;
    return coordinator.Open();
  }
  void Reopen(const std::string& store) {
    ASSERT_EQ(TryOpen(coordinator_, store), absl::OkStatus());
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }
  void ExpectRefused(const absl::Status& status, const std::string& why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  void Unmount() { fs::rename(store_, store_ + ".away"); }
  void Mount() {
    fs::remove_all(store_);
    fs::rename(store_ + ".away", store_);
  }
  std::string PathOf(const std::string& bytes) const {
    return absl::StrCat(store_, "/sort-1/lr0-seed0/", platform::Sha256Hex(bytes), ".safetensors");
  }

  const std::string store_;
};

TEST_F(CoreSharedStoreTest, CheckpointsLeaveTheDataDirectory) {
  const std::string experiment = Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  coordinator_->sweeper().Flush();
  EXPECT_THAT(Artifacts(store_), SizeIs(2));
  EXPECT_THAT(Artifacts(coordinator_.data_dir() + "/artifacts"), IsEmpty());
  const v1::Storage storage = *coordinator_->backups().GetStorage();
  EXPECT_EQ(storage.artifacts(), 2);
  EXPECT_EQ(storage.checkpoints_elsewhere(), store_);
  EXPECT_GT(storage.elsewhere_free_bytes(), 0);
  EXPECT_EQ(coordinator_->reads().GetExperiment(experiment)->disk_use().artifacts(), 2);
  End(lease, v1::Outcome::COMPLETED);
  coordinator_->sweeper().Flush();
  EXPECT_THAT(Artifacts(store_), ElementsAre("checkpoint 3"));
  Reopen(store_);
  EXPECT_TRUE(coordinator_->artifacts().OpenModel(experiment + "/trials/lr0-seed0").ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  coordinator_->sweeper().Flush();
  EXPECT_FALSE(fs::exists(store_ + "/sort-1"));
}

TEST_F(CoreSharedStoreTest, UnmountedStoreLosesNothing) {
  const std::string experiment = Create("weights");
  const std::string trial = experiment + "/trials/lr0-seed0";
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  Unmount();
  // As an unmounted directory looks: with a mount point, or without.
  for (const bool with_directory : {false, true}) {
    if (with_directory) fs::create_directory(store_);
    const absl::Status model = coordinator_->artifacts().OpenModel(trial).status();
    EXPECT_EQ(model.code(), absl::StatusCode::kUnavailable) << model;
    EXPECT_EQ(coordinator_.Upload(lease, 0, 40, "checkpoint 4").code(),
              absl::StatusCode::kUnavailable);
    EXPECT_THAT(coordinator_->reads().GetTrial(trial)->reason(),
                HasSubstr("waits, because the server cannot store its progress: "));
    EXPECT_EQ(coordinator_.Download(lease, 0, platform::Sha256Hex("checkpoint 3")).status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(coordinator_.Send(lease, {CheckpointEvent(lease, 0, 4, 40, "checkpoint 4")})
                  .status()
                  .code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(coordinator_->backups().GetStorage().status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(coordinator_->reads().GetExperiment(experiment).status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(coordinator_.BackUp("b").code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(fs::is_empty(store_)) << "nothing is written below the mount point";
  // The trial waits, and resumes from its newest checkpoint.
  coordinator_.Release("w", lease);
  EXPECT_THAT(coordinator_.Acquire("w").trials(), SizeIs(0));
  EXPECT_THAT(coordinator_->reads().GetTrial(trial)->reason(), HasSubstr("cannot be read now"));
  Mount();
  coordinator_.Advance(absl::Seconds(6));
  const v1::Lease next = coordinator_.Acquire("w");
  ASSERT_THAT(next.trials(), SizeIs(1));
  EXPECT_EQ(next.trials(0).checkpoint_step(), 30);
  // It says so until a checkpoint is stored again.
  EXPECT_EQ(coordinator_.Upload(next, 0, 40, "checkpoint 4"), absl::OkStatus());
  EXPECT_THAT(coordinator_->reads().GetTrial(trial)->reason(), HasSubstr("leased to w"));
  EXPECT_EQ(coordinator_->reads().GetExperiment(experiment)->storage_fault(), "");
}

TEST_F(CoreSharedStoreTest, DeletionsWaitForTheStore) {
  const std::string experiment = Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  coordinator_->sweeper().Flush();
  Unmount();
  End(lease, v1::Outcome::COMPLETED);
  coordinator_->sweeper().Flush();
  EXPECT_THAT(Artifacts(store_ + ".away"), SizeIs(2));
  Mount();
  coordinator_->sweeper().Flush();
  EXPECT_THAT(Artifacts(store_), ElementsAre("checkpoint 3")) << "without a restart";
  Unmount();
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  coordinator_->sweeper().Flush();
  EXPECT_TRUE(fs::exists(store_ + ".away/sort-1"));
  Mount();
  coordinator_->sweeper().Flush();
  EXPECT_FALSE(fs::exists(store_ + "/sort-1"));
}

TEST_F(CoreSharedStoreTest, UnmountedStoreRefusesToStart) {
  Create("weights");
  Train(coordinator_.Acquire("w"));
  Unmount();
  ExpectRefused(TryOpen(coordinator_, store_), "mount the file system");
  EXPECT_FALSE(fs::exists(store_));
  fs::create_directory(store_);
  ExpectRefused(TryOpen(coordinator_, store_), "mount the file system");
  EXPECT_TRUE(fs::is_empty(store_));
  ExpectRefused(TryOpen(coordinator_, ""), "start the server with --artifacts " + store_);
  Mount();
  EXPECT_EQ(TryOpen(coordinator_, store_), absl::OkStatus());
}

TEST_F(CoreSharedStoreTest, StoreHasOneServer) {
  TestCoordinator other;
  ExpectRefused(TryOpen(other, store_), "another server uses this directory");
  coordinator_.Close();
  ExpectRefused(TryOpen(other, store_),
                "belongs to the data directory " + Normal(coordinator_.data_dir()));
  other.options().take_over_artifacts = true;
  EXPECT_EQ(TryOpen(other, store_), absl::OkStatus());
  other.Close();
  ExpectRefused(TryOpen(coordinator_, store_),
                "belongs to the data directory " + Normal(other.data_dir()));
}

TEST_F(CoreSharedStoreTest, CopiedDataDirectoryLosesTheStore) {
  coordinator_.Close();
  const std::string copy = NewDirectory();
  fs::copy(coordinator_.data_dir(), copy, fs::copy_options::recursive);
  Reopen(store_);
  coordinator_.Close();
  TestCoordinator other(copy);
  ExpectRefused(TryOpen(other, store_), "--take_over_artifacts");
  // A moved one keeps it.
  fs::remove_all(copy);
  fs::rename(coordinator_.data_dir(), copy);
  EXPECT_EQ(TryOpen(other, store_), absl::OkStatus());
}

TEST_F(CoreSharedStoreTest, MovedStoreIsAccepted) {
  Create("weights");
  Train(coordinator_.Acquire("w"));
  coordinator_.Close();
  fs::rename(store_, store_ + ".moved");
  Reopen(store_ + ".moved");
  EXPECT_EQ(coordinator_->artifacts()
                .OpenModel("experiments/sort-1/trials/lr0-seed0")
                .value()
                .bytes->Next()
                .value(),
            "checkpoint 3");
}

TEST_F(CoreSharedStoreTest, CheckpointsMoveOutOfTheDataDirectory) {
  Reopen(store_);
  coordinator_.Close();
  fs::remove(coordinator_.data_dir() + "/checkpoint_store.json");
  Reopen("");
  Create("weights");
  Train(coordinator_.Acquire("w"));
  const std::string target = store_ + ".new";
  fs::remove_all(target);
  ExpectRefused(TryOpen(coordinator_, target), "mount the file system");
  fs::copy(coordinator_.data_dir() + "/artifacts", target, fs::copy_options::recursive);
  ExpectRefused(TryOpen(coordinator_, target), "mount the file system");
  coordinator_.options().take_over_artifacts = true;
  Reopen(target);
  coordinator_.options().take_over_artifacts = false;
  Reopen(target);
  EXPECT_TRUE(coordinator_->artifacts().OpenModel("experiments/sort-1/trials/lr0-seed0").ok());
}

TEST_F(CoreSharedStoreTest, LeftoversOfACrashDoNotBlockTheStart) {
  coordinator_.Close();
  fs::remove(store_ + "/lengthwise_store.json");
  const std::string left = store_ + "/lengthwise_store.json.abc123.tmp";
  std::ofstream(left) << "{";
  const std::string left_keys = coordinator_.data_dir() + "/checkpoint_store.json.abc123.tmp";
  std::ofstream(left_keys) << "{";
  EXPECT_EQ(TryOpen(coordinator_, store_), absl::OkStatus());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(left_keys));
  // The keys were written, the mark was not.
  coordinator_.Close();
  const std::string mark = *platform::ReadFile(store_ + "/lengthwise_store.json");
  ASSERT_EQ(TryOpen(coordinator_, store_), absl::OkStatus());
  coordinator_.Close();
  ASSERT_EQ(platform::WriteFileAtomically(store_ + "/lengthwise_store.json", mark),
            absl::OkStatus());
  EXPECT_EQ(TryOpen(coordinator_, store_), absl::OkStatus());
}

TEST_F(CoreSharedStoreTest, OtherFilesAreKept) {
  const std::string experiment = Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  coordinator_.Close();
  const std::string outside = NewDirectory() + ".outside";
  fs::remove_all(outside);
  fs::create_directories(outside + "/trial");
  const std::string name = "/" + platform::Sha256Hex("x") + ".safetensors";
  const std::string trial = store_ + "/sort-1/lr0-seed0";
  const std::vector<std::string> kept = {store_ + "/note",
                                         store_ + "/sort-1/note",
                                         trial + "/note.tmp",
                                         trial + "/x.safetensors",
                                         outside + "/trial/kept",
                                         outside + "/trial" + name,
                                         outside + "/trial" + name + ".abc123.tmp"};
  for (const std::string& path : kept) std::ofstream(path) << "mine";
  fs::create_directory_symlink(outside, store_ + "/link-1");
  fs::create_directory_symlink(outside + "/trial", store_ + "/sort-1/link");
  const std::string unfinished = PathOf("checkpoint 4") + ".abc123.tmp";
  std::ofstream(unfinished) << "half";
  Reopen(store_);
  EXPECT_FALSE(fs::exists(unfinished));
  End(lease, v1::Outcome::COMPLETED);
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  coordinator_->sweeper().Flush();
  EXPECT_FALSE(fs::exists(PathOf("checkpoint 3")));
  Reopen(store_);
  coordinator_->sweeper().Flush();
  for (const std::string& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(CoreSharedStoreTest, UnsuitableDirectoriesAreRefused) {
  TestCoordinator other;
  const std::string data = other.data_dir();
  for (const std::string& path : {std::string("relative"), data, data + "/store",
                                  data + "/../" + fs::path(data).filename().string(),
                                  fs::path(data).parent_path().string(), store_ + "\xff"}) {
    EXPECT_EQ(TryOpen(other, path).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  ExpectRefused(TryOpen(other, store_ + "/missing/store"), "create the parent directory");
  const std::string used = NewDirectory() + ".used";
  fs::remove_all(used);
  fs::create_directory(used);
  std::ofstream(used + "/file") << "mine";
  ExpectRefused(TryOpen(other, used), "it holds other files (file)");
  EXPECT_FALSE(fs::exists(used + "/lengthwise_store.lock"));
  ExpectRefused(TryOpen(other, "/proc"), "mount point");
}

TEST_F(CoreSharedStoreTest, BackupListsCheckpointsAndRestoreChecksThem) {
  const std::string experiment = Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  const std::string backup = coordinator_.data_dir() + "/backups/b";
  EXPECT_FALSE(fs::exists(backup + "/artifacts"));
  EXPECT_THAT(*platform::ReadFile(backup + "/manifest.json"),
              AllOf(HasSubstr("lengthwise.backup.2"), HasSubstr(store_),
                    HasSubstr(platform::Sha256Hex("checkpoint 3"))));
  const std::string snapshot = store_ + ".snapshot";
  fs::remove_all(snapshot);
  fs::copy(store_, snapshot, fs::copy_options::recursive);

  TestCoordinator copy;
  copy.options().restore_from = backup;
  ExpectRefused(TryOpen(copy, ""), "add --artifacts");
  copy.options().take_over_artifacts = true;
  // One of the two newest checkpoints is enough.
  const std::string trial = snapshot + "/sort-1/lr0-seed0/";
  const auto remove = [&](const std::string& bytes) {
    fs::remove(trial + platform::Sha256Hex(bytes) + ".safetensors");
  };
  remove("checkpoint 3");
  const std::string whole = trial + platform::Sha256Hex("checkpoint 2") + ".safetensors";
  fs::rename(whole, whole + ".away");
  const absl::Status lacks = TryOpen(copy, snapshot);
  EXPECT_EQ(lacks.code(), absl::StatusCode::kDataLoss) << lacks;
  EXPECT_THAT(std::string(lacks.message()), HasSubstr("no checkpoint of 1 trials"));
  EXPECT_FALSE(fs::exists(copy.data_dir()));
  fs::rename(whole + ".away", whole);
  ASSERT_EQ(TryOpen(copy, snapshot), absl::OkStatus());
  // Without its store, the restored server refuses to start.
  copy.options().restore_from.clear();
  copy.options().take_over_artifacts = false;
  ExpectRefused(TryOpen(copy, ""), "--artifacts " + snapshot);
  ASSERT_EQ(TryOpen(copy, snapshot), absl::OkStatus());
  ASSERT_EQ(copy.Register("v"), absl::OkStatus());
  copy.Advance(absl::Minutes(10));
  ASSERT_EQ(copy.Register("v"), absl::OkStatus());
  EXPECT_EQ(copy.Acquire("v").trials(0).checkpoint_step(), 20);
}

}  // namespace
}  // namespace lengthwise::server
