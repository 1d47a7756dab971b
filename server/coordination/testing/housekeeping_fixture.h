// Test fixture for retention: a core, a worker "w" and trials that store checkpoints.
#ifndef LENGTHWISE_SERVER_COORDINATION_TESTING_HOUSEKEEPING_FIXTURE_H_
#define LENGTHWISE_SERVER_COORDINATION_TESTING_HOUSEKEEPING_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {

class CoreHousekeepingTest : public testing::Test {
 protected:
  CoreHousekeepingTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  std::string Create(const std::string& keep, int seeds = 1, const std::string& retention = "") {
    v1::CreateExperimentRequest request;
    v1::ExperimentSpecification& specification = *request.mutable_specification();
    specification.set_name("sort");
    specification.add_learning_rates(0.001);
    for (int seed = 0; seed < seeds; ++seed) specification.add_seeds(seed);
    specification.mutable_training()->set_steps(100);
    specification.set_keep(keep);
    specification.set_retention(retention);
    const auto response = coordinator_.TryCreate(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response->experiment().name();
  }

  // Uploads and sends checkpoints of steps 10, 20, 30.
  void Train(const v1::Lease& lease) {
    for (int64_t sequence = 1; sequence <= 3; ++sequence) {
      const std::string bytes = absl::StrCat("checkpoint ", sequence);
      ASSERT_EQ(coordinator_.Upload(lease, 0, 10 * sequence, bytes), absl::OkStatus());
      ASSERT_EQ(
          coordinator_.Send(lease, {CheckpointEvent(lease, 0, sequence, 10 * sequence, bytes)})
              ->acknowledged_sequence(),
          sequence);
    }
  }
  // Ends the trial at the step of its newest checkpoint.
  void End(const v1::Lease& lease, v1::Outcome::Kind kind, int64_t sequence = 4,
           int64_t step = 30) {
    const auto response =
        coordinator_.Send(lease, {OutcomeEvent(lease, 0, sequence, step, kind, "x")});
    ASSERT_EQ(response->refusal(), 0) << response->detail();
  }

  // The contents of all artifacts in a directory of artifacts.
  static std::vector<std::string> Artifacts(const std::string& directory) {
    std::vector<std::string> contents;
    std::error_code gone;  // deleted meanwhile
    for (std::filesystem::recursive_directory_iterator entry(directory, gone), end;
         !gone && entry != end; entry.increment(gone)) {
      if (entry->path().extension() != ".safetensors") continue;
      std::ifstream file(entry->path());
      contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return contents;
  }
  // After the sweeper's look.
  std::vector<std::string> Artifacts() {
    coordinator_->sweeper().Flush();
    return Artifacts(coordinator_.artifacts_dir());
  }

  TestCoordinator coordinator_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_TESTING_HOUSEKEEPING_FIXTURE_H_
