#include "server/storage/directory_artifact_store.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

absl::StatusOr<bool> Unneeded() { return true; }

class ArtifactStoreTest : public testing::Test {
 protected:
  ArtifactStoreTest()
      : directory_(testing::TempDir() + "/artifacts_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    store_ = *DirectoryArtifactStore::Open(directory_);
  }

  static ArtifactId IdOf(const std::string& bytes) {
    return {.experiment = "sort-1", .trial = "lr0.1-seed0", .sha256 = platform::Sha256Hex(bytes)};
  }
  std::string PathOf(const std::string& bytes) const {
    return directory_ + "/sort-1/lr0.1-seed0/" + platform::Sha256Hex(bytes);
  }
  absl::Status Write(const std::string& bytes) {
    ASSIGN_OR_RETURN(auto writer, store_->Write(IdOf(bytes), bytes.size()));
    RETURN_IF_ERROR(writer->Append(bytes));
    return writer->Finish();
  }

  const std::string directory_;
  std::unique_ptr<ArtifactStore> store_;
};

TEST_F(ArtifactStoreTest, ManifestOfAnEarlierReleaseGoesWithItsArtifact) {
  ASSERT_EQ(Write("weights"), absl::OkStatus());
  EXPECT_EQ(*platform::ReadFile(PathOf("weights") + ".safetensors"), "weights");
  EXPECT_EQ(store_->Verify(IdOf("weights"), 7), absl::OkStatus());
  std::ofstream(PathOf("weights") + ".json") << "{}";
  EXPECT_THAT(*store_->List("sort-1", "lr0.1-seed0"),
              testing::ElementsAre(platform::Sha256Hex("weights")));
  EXPECT_EQ(store_->Delete(IdOf("weights"), Unneeded), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(PathOf("weights") + ".json"));
}

TEST_F(ArtifactStoreTest, CopyOutlivesItsOriginal) {
  ASSERT_EQ(Write("weights"), absl::OkStatus());
  ASSERT_EQ(store_->Copy(IdOf("weights"), "again-1", "lr0.1-seed0"), absl::OkStatus());
  // Again, as after a crash.
  ASSERT_EQ(store_->Copy(IdOf("weights"), "again-1", "lr0.1-seed0"), absl::OkStatus());
  EXPECT_EQ(store_->DeleteExperiment("sort-1", Unneeded), absl::OkStatus());
  ArtifactId copy = IdOf("weights");
  copy.experiment = "again-1";
  // A store that did not make the copy verifies it as well.
  store_ = *DirectoryArtifactStore::Open(directory_);
  EXPECT_EQ(store_->Verify(copy, 7), absl::OkStatus());

  EXPECT_EQ(store_->Copy(IdOf("weights"), "more-1", "t").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/more-1"));
  EXPECT_EQ(store_->Copy(copy, "..", "t").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ArtifactStoreTest, DamageIsFoundAfterVerification) {
  ASSERT_EQ(Write("weights"), absl::OkStatus());
  ASSERT_EQ(store_->Verify(IdOf("weights"), 7), absl::OkStatus());
  const std::string path = PathOf("weights") + ".safetensors";
  std::ofstream(path) << "weighty";
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_EQ(store_->Verify(IdOf("weights"), 7).code(), absl::StatusCode::kDataLoss);
  std::ofstream(path) << "short";
  EXPECT_EQ(store_->Verify(IdOf("weights"), 7).code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(path);
  EXPECT_EQ(store_->Verify(IdOf("weights"), 7).code(), absl::StatusCode::kNotFound);
}

TEST_F(ArtifactStoreTest, OnlyVerifyReadsLargeArtifacts) {
  ASSERT_EQ(Write("weights"), absl::OkStatus());
  const std::string path = PathOf("weights") + ".safetensors";
  std::ofstream(path) << "weighty";
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_EQ(store_->VerifyQuickly(IdOf("weights"), 7, /*most_bytes=*/6), absl::OkStatus());
  EXPECT_EQ(store_->VerifyQuickly(IdOf("weights"), 8, 6).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store_->Verify(IdOf("weights"), 7).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store_->VerifyQuickly(IdOf("weights"), 7, 6).code(), absl::StatusCode::kDataLoss);
}

TEST_F(ArtifactStoreTest, NamesStayInTheDirectory) {
  for (const std::string name : {"..", ".", "../x", "a/b", "", "a b"}) {
    ArtifactId id = IdOf("weights");
    id.trial = name;
    EXPECT_EQ(store_->Write(id, 7).status().code(), absl::StatusCode::kInvalidArgument) << name;
    id = IdOf("weights");
    id.experiment = name;
    EXPECT_EQ(store_->Verify(id).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(store_->DeleteExperiment("..", Unneeded).code(), absl::StatusCode::kInvalidArgument);
}

// The store refused "=" in ids, and ids of more than 200 characters. So it refused checkpoints of
// every trial whose encodings differ in a parameter.
TEST_F(ArtifactStoreTest, RegressionIdsMayBeLongAndHaveEqualSigns) {
  const std::string longest(512, 'x');
  const std::string sibling = longest.substr(1) + "y";  // differs beyond the length of a file name
  for (const std::string& trial :
       {std::string("bucket_sort-encoder-randomized_relative_max_position=256-lr0.001-seed0"),
        std::string(201, 'x'), std::string(255, 'x'), std::string(256, 'x'), longest, sibling}) {
    for (const std::string bytes : {"one", "two"}) {
      const ArtifactId id = {
          .experiment = longest, .trial = trial, .sha256 = platform::Sha256Hex(bytes)};
      auto writer = store_->Write(id, 3);
      ASSERT_TRUE(writer.ok()) << trial << ": " << writer.status();
      ASSERT_EQ((*writer)->Append(bytes), absl::OkStatus());
      ASSERT_EQ((*writer)->Finish(), absl::OkStatus());
    }
  }
  store_ = *DirectoryArtifactStore::Open(directory_);
  ArtifactId id = {.experiment = longest, .trial = longest, .sha256 = platform::Sha256Hex("one")};
  EXPECT_EQ(store_->Verify(id, 3), absl::OkStatus());
  const auto reader = store_->Open(id);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Next().value(), "one");
  EXPECT_EQ((*reader)->Next().value(), "");
  EXPECT_EQ(store_->Copy(id, "copies=1", "of=it"), absl::OkStatus());
  EXPECT_EQ(*store_->List(longest, longest),
            (std::vector<std::string>{platform::Sha256Hex("two"), platform::Sha256Hex("one")}));
  EXPECT_EQ(store_->Delete(id, Unneeded), absl::OkStatus());
  EXPECT_EQ(store_->Verify(id).code(), absl::StatusCode::kNotFound);
  id.trial = sibling;
  EXPECT_EQ(store_->Verify(id), absl::OkStatus());
  EXPECT_EQ(store_->Delete(id, Unneeded), absl::OkStatus());
  EXPECT_EQ(store_->Verify(id).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->DeleteExperiment(longest, Unneeded), absl::OkStatus());
  EXPECT_EQ(*platform::ListDirectory(directory_), std::vector<std::string>{"copies=1"});
}

TEST_F(ArtifactStoreTest, ManyTrialsAreDeletedInParts) {
  constexpr int kTrials = 120;
  const ArtifactId other = {
      .experiment = "other-1", .trial = "t", .sha256 = platform::Sha256Hex("weights")};
  std::vector<ArtifactId> ids = {other};
  for (int i = 0; i < kTrials; ++i) {
    ids.push_back({.experiment = "sort-1",
                   .trial = absl::StrCat("t", i),
                   .sha256 = platform::Sha256Hex("weights")});
  }
  for (const ArtifactId& id : ids) {
    auto writer = store_->Write(id, 7);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_EQ((*writer)->Append("weights"), absl::OkStatus());
    ASSERT_EQ((*writer)->Finish(), absl::OkStatus());
  }
  int left_in_part = 0;
  const auto in_parts = [&]() -> absl::StatusOr<bool> {
    if (left_in_part-- > 0) return true;
    return absl::AbortedError("later");
  };
  int parts = 0;
  do {
    left_in_part = 50;
    ++parts;
  } while (absl::IsAborted(store_->DeleteExperiment("sort-1", in_parts)));
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(*platform::ListDirectory(directory_), std::vector<std::string>{"other-1"});
  EXPECT_EQ(store_->Verify(ids.back()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Verify(other), absl::OkStatus());
}

TEST_F(ArtifactStoreTest, StartDeletesFilesOfInterruptedWriters) {
  ASSERT_EQ(Write("weights"), absl::OkStatus());
  std::ofstream(PathOf("other") + ".safetensors.abc123.tmp") << "half";
  const std::string others = directory_ + "/sort-1/lr0.1-seed0/notes.tmp";
  std::ofstream(others) << "of somebody else";
  store_ = *DirectoryArtifactStore::Open(directory_);
  EXPECT_EQ(platform::ListDirectory(directory_ + "/sort-1/lr0.1-seed0")->size(), 2u);
  EXPECT_EQ(*platform::ReadFile(others), "of somebody else");
  EXPECT_EQ(store_->Verify(IdOf("weights"), 7), absl::OkStatus());
}

TEST_F(ArtifactStoreTest, OnlyAMountedDirectoryElsewhereHasADisk) {
  EXPECT_EQ(MeasureDiskElsewhere(directory_)->size_bytes,
            platform::GetDiskSpace(directory_)->size_bytes);
  for (const std::string none : {"", "s3://bucket/checkpoints", "/nowhere"}) {
    EXPECT_FALSE(MeasureDiskElsewhere(none).has_value()) << none;
  }
}

TEST(FullerDiskTest, HasTheSmallerFreeShare) {
  const platform::DiskSpace small = {.free_bytes = 9, .size_bytes = 10};
  const platform::DiskSpace large = {.free_bytes = 100, .size_bytes = 1'000};
  EXPECT_EQ(FullerDisk(small, large).size_bytes, 1'000);
  EXPECT_EQ(FullerDisk(large, small).size_bytes, 1'000);
  // Of a file system without a size nothing is known.
  EXPECT_EQ(FullerDisk(small, platform::DiskSpace()).size_bytes, 10);
}

TEST_F(ArtifactStoreTest, DeletionAsksOnceNobodyCanStore) {
  ASSERT_EQ(Write("weights"), absl::OkStatus());
  EXPECT_EQ(store_->Delete(IdOf("weights"),
                           [&]() -> absl::StatusOr<bool> {
                             EXPECT_TRUE(absl::IsUnavailable(Write("weights")));
                             EXPECT_EQ(Write("other"), absl::OkStatus());
                             return false;
                           }),
            absl::OkStatus());
  EXPECT_EQ(store_->Verify(IdOf("weights")), absl::OkStatus());
  EXPECT_EQ(store_->Delete(IdOf("weights"), Unneeded), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(store_->Verify(IdOf("weights"))));
  EXPECT_EQ(platform::ListDirectory(directory_ + "/sort-1/lr0.1-seed0")->size(), 1u);
  EXPECT_EQ(*store_->List("sort-1", "lr0.1-seed0"),
            std::vector<std::string>{platform::Sha256Hex("other")});
  EXPECT_EQ(Write("weights"), absl::OkStatus());
  {
    const auto held = store_->Hold("sort-1");
    EXPECT_TRUE(absl::IsAborted(store_->DeleteExperiment("sort-1", Unneeded)));
  }
  EXPECT_EQ(store_->DeleteExperiment("sort-1", Unneeded), absl::OkStatus());
  EXPECT_TRUE(platform::ListDirectory(directory_)->empty());
}

}  // namespace
}  // namespace lengthwise::server
