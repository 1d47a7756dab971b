// Files of examples: uploaded once, kept while an experiment needs them, served to its workers.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "rpc/status.h"
#include "server/coordination/testing/housekeeping_fixture.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {
namespace {

using testing::HasSubstr;

constexpr char kExamples[] =
    "{\"input\": [1, 0], \"target\": [0, 1]}\n{\"input\": [1], \"target\": [1]}\n";

class CoreDataTest : public CoreHousekeepingTest {
 protected:
  absl::Status Upload(const std::string& bytes, const std::string& sha256, int64_t size,
                      const std::string& principal = "ada") {
    v1::UploadDataRequest::Header header;
    header.set_sha256(sha256);
    header.set_size_bytes(size);
    auto writer = coordinator_->artifacts().WriteData(header, principal);
    if (!writer.ok()) return writer.status();
    // In two parts, split within a line.
    const absl::string_view text(bytes);
    const size_t half = text.size() / 2;
    for (const absl::string_view part : {text.substr(0, half), text.substr(half)}) {
      if (const absl::Status status = (*writer)->Append(part); !status.ok()) return status;
    }
    return (*writer)->Finish();
  }
  absl::Status Upload(const std::string& bytes = kExamples) {
    return Upload(bytes, platform::Sha256Hex(bytes), static_cast<int64_t>(bytes.size()));
  }

  absl::StatusOr<v1::CreateExperimentResponse> CreateWithExamples(
      const std::string& bytes = kExamples) {
    v1::CreateExperimentRequest request;
    v1::ExperimentSpecification& specification = *request.mutable_specification();
    specification.set_name("mine");
    specification.add_learning_rates(0.001);
    specification.add_seeds(0);
    specification.mutable_training()->set_steps(100);
    v1::Component& task = *specification.add_tasks();
    task.set_name("examples");
    (*task.mutable_parameters())["train_sha256"].set_string_value(platform::Sha256Hex(bytes));
    (*task.mutable_parameters())["contents"].set_string_value(absl::StrCat(
        R"({"form":"symbols","input_symbols":2,"target_symbols":2,"same_length":true,"train_bytes":)",
        bytes.size(),
        R"(,"test_bytes":0,"training":{"examples":1,"longest":4,"lengths":"2x1"},)"
        R"("test":{"examples":1,"longest":2,"lengths":"1x1"}})"));
    return coordinator_.TryCreate(request);
  }

  std::string DataPath(const std::string& experiment, const std::string& bytes = kExamples) {
    return absl::StrCat(coordinator_.data_dir(), "/artifacts/", experiment, "/data/",
                        platform::Sha256Hex(bytes), ".jsonl");
  }

  // Makes the file look as if it was uploaded two hours ago.
  static void Age(const std::string& path) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  }

  int64_t Files() {
    int64_t files = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(coordinator_.data_dir() + "/artifacts")) {
      files += entry.is_regular_file();
    }
    return files;
  }
};

TEST_F(CoreDataTest, ExperimentNeedsItsExamples) {
  const auto refused = CreateWithExamples();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(platform::Sha256Hex(kExamples)));
  ASSERT_EQ(Upload(), absl::OkStatus());
  const auto created = CreateWithExamples();
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->experiment().name(), "experiments/mine-1") << "the refused one left nothing";
}

TEST_F(CoreDataTest, SharedFileIsStoredOnce) {
  ASSERT_EQ(Upload(), absl::OkStatus());
  const int64_t once = MeasureArtifacts(coordinator_.data_dir() + "/artifacts")->bytes;
  ASSERT_TRUE(CreateWithExamples().ok());
  ASSERT_TRUE(CreateWithExamples().ok());
  EXPECT_EQ(std::filesystem::hard_link_count(DataPath("mine-2")), 3u);
  EXPECT_EQ(MeasureArtifacts(coordinator_.data_dir() + "/artifacts")->bytes, once);
  EXPECT_GE(MeasureArtifacts(coordinator_.data_dir() + "/artifacts/mine-1")->bytes,
            static_cast<int64_t>(sizeof(kExamples) - 1));
}

TEST_F(CoreDataTest, OnlyTheLeaseHolderFetchesExamples) {
  ASSERT_EQ(Upload(), absl::OkStatus());
  ASSERT_TRUE(CreateWithExamples().ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(lease.trials_size(), 1);
  const auto bytes = coordinator_.Download(lease, 0, platform::Sha256Hex(kExamples));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, kExamples);
  EXPECT_EQ(coordinator_.Download(lease, 0, platform::Sha256Hex("others")).status().code(),
            absl::StatusCode::kNotFound);
  End(lease, v1::Outcome::FAILED_PERMANENTLY, /*sequence=*/1, /*step=*/0);
  EXPECT_EQ(coordinator_.Download(lease, 0, platform::Sha256Hex(kExamples)).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(CoreDataTest, ExamplesOfAnotherExperimentAreNotServed) {
  const std::string others = "{\"input\": [0], \"target\": [1]}\n";
  ASSERT_EQ(Upload(), absl::OkStatus());
  ASSERT_EQ(Upload(others), absl::OkStatus());
  ASSERT_TRUE(CreateWithExamples().ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  EXPECT_EQ(coordinator_.Download(lease, 0, platform::Sha256Hex(others)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CoreDataTest, NetworkOfATrialIsServedToReaders) {
  const std::string archive = R"({"lengthwise_network":1,"entry":"a.py","files":{"a.py":""}})";
  ASSERT_EQ(Upload(archive), absl::OkStatus());
  v1::CreateExperimentRequest request;
  v1::ExperimentSpecification& specification = *request.mutable_specification();
  specification.set_name("module");
  specification.add_learning_rates(0.001);
  specification.add_seeds(0);
  specification.mutable_training()->set_steps(100);
  v1::Component& network = *specification.add_networks();
  network.set_name("python");
  auto& parameters = *network.mutable_parameters();
  parameters["file_sha256"].set_string_value(platform::Sha256Hex(archive));
  parameters["file_bytes"].set_number_value(static_cast<double>(archive.size()));
  const auto created = coordinator_.TryCreate(request);
  ASSERT_TRUE(created.ok()) << created.status();
  auto opened = coordinator_->artifacts().OpenModel(
      created->experiment().name() + "/trials/lr0-seed0", /*is_network=*/true);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->checkpoint.sha256(), platform::Sha256Hex(archive));
  EXPECT_EQ(opened->checkpoint.size_bytes(), static_cast<int64_t>(archive.size()));
  EXPECT_EQ(opened->bytes->Next().value(), archive);
}

TEST_F(CoreDataTest, UploadThatDiffersFromItsHeaderLeavesNoFile) {
  const std::string bytes = kExamples;
  const auto size = static_cast<int64_t>(bytes.size());
  EXPECT_EQ(Upload(bytes, platform::Sha256Hex("others"), size).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Upload(bytes, platform::Sha256Hex(bytes), size - 1).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Upload(bytes, platform::Sha256Hex(bytes), size + 1).code(),
            absl::StatusCode::kDataLoss);
  const absl::Status bad = Upload(bytes + "{\"input\": [1], \"tar\n" + bytes);
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad.message()), HasSubstr("data: line 3: "));
  EXPECT_EQ(Upload(std::string("\0", 1)).code(), absl::StatusCode::kInvalidArgument);
  coordinator_.Close();
  coordinator_.options().max_data_bytes = size - 1;
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  const absl::Status large = Upload();
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(large.message()), HasSubstr("--max_data_bytes"));
  EXPECT_EQ(Files(), 0);
}

TEST_F(CoreDataTest, UploadsOfOnePrincipalAreBounded) {
  const std::string bytes = kExamples, sha256 = platform::Sha256Hex(bytes);
  const auto size = static_cast<int64_t>(bytes.size());
  coordinator_.Close();
  coordinator_.options().max_data_bytes = size;
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Upload(), absl::OkStatus());
  const absl::Status refused = Upload();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(rpc::RetryDelay(refused), absl::ZeroDuration());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--max_data_bytes"));
  EXPECT_EQ(Upload(bytes, sha256, size, "grace"), absl::OkStatus());
  // A restart is no new hour.
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_EQ(Upload().code(), absl::StatusCode::kResourceExhausted);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(Upload(bytes, sha256, size, "grace"), absl::OkStatus());
  EXPECT_EQ(Upload(bytes, sha256, size, "grace").code(), absl::StatusCode::kResourceExhausted);
}

// The hour is for users who have uploaded but not submitted yet.
TEST_F(CoreDataTest, UnusedUploadsAreDeletedAfterAnHour) {
  const std::string others = "{\"input\": [0], \"target\": [1]}\n";
  ASSERT_EQ(Upload(), absl::OkStatus());
  const std::string experiment = CreateWithExamples()->experiment().name();
  Age(DataPath("uploads"));
  ASSERT_EQ(Upload(others), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(DataPath("uploads"))) << "an experiment has it";
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(DataPath("uploads")));
  EXPECT_TRUE(std::filesystem::exists(DataPath("uploads", others))) << "it is new";
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  coordinator_->sweeper().Flush();
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(DataPath("mine-1")));
  EXPECT_FALSE(std::filesystem::exists(DataPath("uploads")));
}

std::string Example(int number) {
  return absl::StrCat("{\"input\": [", number, "], \"target\": [1]}\n");
}

TEST_F(CoreDataTest, IdleServerDeletesUnusedUploads) {
  const std::string others = "{\"input\": [0], \"target\": [1]}\n";
  ASSERT_EQ(Upload(), absl::OkStatus());
  ASSERT_EQ(Upload(others), absl::OkStatus());
  Age(DataPath("uploads"));
  coordinator_.Advance(absl::Minutes(9));
  EXPECT_TRUE(std::filesystem::exists(DataPath("uploads")));
  coordinator_.Advance(absl::Minutes(2));
  EXPECT_FALSE(std::filesystem::exists(DataPath("uploads")));
  EXPECT_TRUE(std::filesystem::exists(DataPath("uploads", others))) << "it is new";
  Age(DataPath("uploads", others));
  coordinator_.Advance(absl::Minutes(10));
  EXPECT_FALSE(std::filesystem::exists(DataPath("uploads", others)));
}

// Each deletion costs time on the command loop.
TEST_F(CoreDataTest, ManyUnusedUploadsGoInParts) {
  const auto left = [&] {
    int files = 0;
    for (int i = 0; i < 60; ++i) {
      files += std::filesystem::exists(DataPath("uploads", Example(i))) ? 1 : 0;
    }
    return files;
  };
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(Upload(Example(i)), absl::OkStatus());
    Age(DataPath("uploads", Example(i)));
  }
  coordinator_.Advance(absl::Minutes(11));
  EXPECT_EQ(left(), 10);
  coordinator_.Advance(absl::Seconds(2));
  EXPECT_EQ(left(), 0);
}

TEST_F(CoreDataTest, RepeatedUploadKeepsTheSharedFile) {
  ASSERT_EQ(Upload(), absl::OkStatus());
  const std::string experiment = CreateWithExamples()->experiment().name();
  Age(DataPath("uploads"));
  ASSERT_EQ(Upload(), absl::OkStatus());
  EXPECT_EQ(std::filesystem::hard_link_count(DataPath("mine-1")), 2u);
  EXPECT_EQ(Files(), 2);
  // Its hour starts again.
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  coordinator_.Advance(absl::Minutes(11));
  EXPECT_TRUE(std::filesystem::exists(DataPath("uploads")));
}

TEST_F(CoreDataTest, RepeatedUploadReplacesADamagedFile) {
  ASSERT_EQ(Upload(), absl::OkStatus());
  std::ofstream(DataPath("uploads")) << "damaged";
  ASSERT_EQ(Upload(), absl::OkStatus());
  EXPECT_TRUE(CreateWithExamples().ok());
}

// Hashing takes seconds, so it must not happen on the command loop.
TEST_F(CoreDataTest, EvaluationHashesExamplesBeforeTheLoop) {
  ASSERT_EQ(Upload(), absl::OkStatus());
  ASSERT_TRUE(CreateWithExamples().ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 100, {1}));
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  v1::EvaluateTrialRequest request;
  request.set_trial(lease.trials(0).trial());
  request.mutable_evaluation()->add_lengths(1);
  const auto prepared = coordinator_->submissions().PrepareEvaluation(request);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  // Other bytes, with the same size and time.
  const auto written = std::filesystem::last_write_time(DataPath("mine-1"));
  std::ofstream(DataPath("mine-1")) << std::string(sizeof(kExamples) - 1, 'x');
  std::filesystem::last_write_time(DataPath("mine-1"), written);
  EXPECT_EQ(coordinator_.Submit(prepared).status(), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(DataPath("mine_evaluation-1")));
}

TEST_F(CoreDataTest, StoredFilesAreCounted) {
  const std::string bytes = kExamples;
  ASSERT_EQ(Upload(), absl::OkStatus());
  ASSERT_EQ(Upload("{\"input\": [0], \"target\": [1]}\n"), absl::OkStatus());
  EXPECT_FALSE(Upload(bytes, platform::Sha256Hex("others"), 9).ok());
  EXPECT_EQ(coordinator_->GetStatistics().example_files_stored, 2);
  EXPECT_EQ(coordinator_->GetStatistics().example_bytes_stored,
            static_cast<int64_t>(bytes.size()) + 30);
}

TEST_F(CoreDataTest, BackupHasTheExamples) {
  ASSERT_EQ(Upload(), absl::OkStatus());
  ASSERT_TRUE(CreateWithExamples().ok());
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  const std::string restored = NewDirectory();
  CoreOptions options;
  options.data_dir = restored;
  options.restore_from = coordinator_.data_dir() + "/backups/b";
  Core::Dependencies dependencies;
  dependencies.resolve = ResolveSimply;
  {
    const auto opened = Core::Open(options, dependencies);
    ASSERT_TRUE(opened.ok()) << opened.status();
  }
  TestCoordinator copy(restored);
  ASSERT_EQ(copy.Open(), absl::OkStatus());
  ASSERT_EQ(copy.Register("w2"), absl::OkStatus());
  const v1::Lease lease = copy.Acquire("w2");
  ASSERT_EQ(lease.trials_size(), 1);
  EXPECT_EQ(copy.Download(lease, 0, platform::Sha256Hex(kExamples)).value_or("none"), kExamples);
}

}  // namespace
}  // namespace lengthwise::server
