// Damaged and hostile files in a data directory. The server must name the file or go on working; it
// must never crash.
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::faults {
namespace {

using server::TestCoordinator;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;

// Exercises everything that reads and writes the store.
void UseEverything(TestCoordinator& coordinator, const std::string& experiment) {
  const auto expect_status = [](const absl::Status& status) {
    EXPECT_THAT(status.code(),
                AnyOf(Eq(absl::StatusCode::kOk), Eq(absl::StatusCode::kDataLoss),
                      Eq(absl::StatusCode::kNotFound), Eq(absl::StatusCode::kUnavailable),
                      Eq(absl::StatusCode::kFailedPrecondition), Eq(absl::StatusCode::kInternal),
                      Eq(absl::StatusCode::kAlreadyExists)))
        << status;
  };
  expect_status(coordinator->reads().GetExperiment(experiment).status());
  v1::ListTrialsRequest trials;
  trials.set_parent(experiment);
  expect_status(coordinator->reads().ListTrials(trials).status());
  expect_status(coordinator->reads().ListExperiments({}).status());
  expect_status(coordinator->event_log().ReadEvents(experiment, 0, 1000).status());
  expect_status(coordinator.Summarize(experiment).status());
  coordinator->GetStatistics();
  expect_status(coordinator.Register("v", 4));
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("more");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(1);
  expect_status(coordinator.TryCreate(request).status());
  coordinator.Advance(absl::Minutes(1));
  expect_status(coordinator.Heartbeat("v", {}).status());
  expect_status(coordinator.Delete(experiment));
}

// Fills a data directory with an experiment that uses every feature. Returns the experiment's name.
std::string Fill(const std::string& directory) {
  TestCoordinator coordinator(directory);
  EXPECT_EQ(coordinator.Open(), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 3, 10);
  EXPECT_EQ(coordinator.Register("w", 1), absl::OkStatus());
  for (int i = 0; i < 20; ++i) {
    const v1::Lease lease = coordinator.Acquire("w");
    EXPECT_TRUE(coordinator.Complete(lease, 0, 10, {0.5, 0.25}));
  }
  coordinator.Acquire("w");
  coordinator.Close();
  return experiment;
}

TEST(DamageTest, DamagedDatabaseNeverCrashesTheServer) {
  const std::string directory = testing::TempDir() + "/database";
  const std::string experiment = Fill(directory + "/whole");
  const std::string path = "/lengthwise.db";
  // The write-ahead log is merged into it, as the last connection leaves it.
  const std::string whole = *platform::ReadFile(directory + "/whole" + path);
  int refused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string bytes = whole;
    switch (seed % 3) {
      case 0:  // truncated
        bytes.resize(random() % bytes.size());
        break;
      case 1:  // a page of another file
        bytes.replace(random() % (bytes.size() / 4096) * 4096, 4096,
                      bytes.substr(random() % (bytes.size() / 4096) * 4096, 4096));
        break;
      default:
        for (int i = 0; i < 200; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const std::string data = absl::StrCat(directory, "/damaged", seed);
    ASSERT_EQ(platform::CreateDirectories(data), absl::OkStatus());
    ASSERT_EQ(platform::WriteFileAtomically(data + path, bytes), absl::OkStatus());
    TestCoordinator coordinator(data);
    const absl::Status opened = coordinator.Open();
    if (opened.ok()) {
      UseEverything(coordinator, experiment);
    } else {
      ++refused;
      EXPECT_THAT(opened.code(),
                  AnyOf(Eq(absl::StatusCode::kDataLoss), Eq(absl::StatusCode::kFailedPrecondition),
                        Eq(absl::StatusCode::kUnavailable)))
          << opened;
      EXPECT_THAT(std::string(opened.message()), AnyOf(HasSubstr(data), HasSubstr("database")))
          << opened;
    }
    coordinator.Close();
    std::filesystem::remove_all(data);
  }
  EXPECT_GT(refused, 0);
}

// The data directory's artifacts/EXPERIMENT is the server's own and is deleted with the experiment.
// In a checkpoint store of its own, foreign files are kept there too (core_shared_store_test).
TEST(DamageTest, ForeignFilesAmongArtifactsAreKept) {
  const std::string directory = testing::TempDir() + "/artifacts";
  const std::string experiment = Fill(directory);
  const std::string artifacts = directory + "/artifacts";
  const std::string own = artifacts + "/sort-1";
  int models = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(own)) {
    models += entry.path().extension() == ".safetensors";
  }
  ASSERT_EQ(models, 20) << "one for each trial that succeeded";

  const std::string outside = testing::TempDir() + "/outside";
  const std::vector<std::string> kept = {artifacts + "/README", artifacts + "/other-1/note",
                                         outside + "/kept", outside + "/kept.tmp"};
  ASSERT_EQ(platform::CreateDirectories(artifacts + "/other-1"), absl::OkStatus());
  ASSERT_EQ(platform::CreateDirectories(outside), absl::OkStatus());
  for (const std::string& path : kept) {
    ASSERT_EQ(platform::WriteFileAtomically(path, "mine"), absl::OkStatus());
  }
  ASSERT_EQ(platform::WriteFileAtomically(own + "/note", "mine"), absl::OkStatus());
  // A start follows no link, and the deletion removes it and keeps its target.
  std::filesystem::create_directory_symlink(outside, own + "/link");

  TestCoordinator coordinator(directory);
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  UseEverything(coordinator, experiment);
  EXPECT_EQ(platform::ReadFile(own + "/note").value_or("it is gone"), "mine")
      << "the experiment still exists";

  // The lease of Fill has expired in UseEverything, and its trial waits again.
  ASSERT_TRUE(coordinator.Cancel(experiment).ok());
  ASSERT_EQ(coordinator.Delete(experiment), absl::OkStatus());
  coordinator->loop().Flush();
  coordinator->sweeper().Flush();
  EXPECT_FALSE(std::filesystem::exists(own));
  coordinator.Close();
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  coordinator->loop().Flush();
  for (const std::string& path : kept) {
    EXPECT_EQ(platform::ReadFile(path).value_or("it is gone"), "mine") << path;
  }
}

}  // namespace
}  // namespace lengthwise::faults
