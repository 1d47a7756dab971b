// `lengthwise run`: a whole experiment with one command, which leaves nothing running however it
// ends.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::HasSubstr;

// An environment variable that `run` and all its children have.
constexpr char kMark[] = "LENGTHWISE_TEST_RUN";

// A specification of `steps` training steps in a file.
std::string WriteSpecification(const std::string& directory, int steps) {
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/tiny.yaml";
  std::ofstream(path) << "name: tiny\n"
                         "tasks: bucket_sort\n"
                         "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
                         "encodings: [sin_cos, {name: sin_cos, randomized: true}]\n"
                         "learning_rates: 0.001\n"
                         "training: {steps: "
                      << steps
                      << ", batch_size: 16, lengths: {min: 1, max: 8}}\n"
                         "evaluation: {lengths: [4, 8, 12], sequences: 32}\n";
  return path;
}

std::unique_ptr<platform::ChildProcess> StartRun(const std::string& directory, int steps) {
  auto process = platform::ChildProcess::Start(
      {.arguments = {kClient, "run", WriteSpecification(directory, steps), "--data_dir",
                     directory + "/data", "--device", "cpu"},
       .environment = {{"LENGTHWISE_SERVER_BINARY", kServer},
                       {"LENGTHWISE_WORKER_BINARY", kWorker},
                       {kMark, directory}},
       .output_file = directory + "/output"});
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

std::string Output(const std::string& directory) {
  std::ifstream file(directory + "/output");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Waits until no process of the run is left, and returns those that still do at
// the deadline.
std::vector<std::string> LeftRunning(const std::string& directory) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  std::vector<std::string> left = ProcessesWithVariable(kMark, directory);
  while (!left.empty() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    left = ProcessesWithVariable(kMark, directory);
  }
  return left;
}

// Waits until the worker that `run` starts after the server is there.
void WaitForWorker(const std::string& directory) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (absl::StrJoin(ProcessesWithVariable(kMark, directory), "\n").find("lengthwise_worker") ==
         std::string::npos) {
    ASSERT_LT(absl::Now(), deadline) << Output(directory);
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TEST(RunTest, PrintsTheResultsOfBothEncodingsAndLeavesNothingRunning) {
  const std::string directory = ::testing::TempDir() + "/complete";
  auto run = StartRun(directory, 40);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_TRUE(exit->ok()) << exit->ToString() << "\n" << Output(directory);
  EXPECT_THAT(Output(directory), HasSubstr("randomized_sin_cos"));
  EXPECT_THAT(Output(directory), HasSubstr("lengthwise results tiny-1"));
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

TEST(RunTest, EndsItsProcessesWhenInterrupted) {
  const std::string directory = ::testing::TempDir() + "/interrupted";
  auto run = StartRun(directory, 1000000);
  WaitForWorker(directory);
  run->Signal(SIGINT);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_EQ(exit->code, 130) << exit->ToString() << "\n" << Output(directory);
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

TEST(RunTest, EndsItsProcessesWhenKilled) {
  const std::string directory = ::testing::TempDir() + "/killed";
  auto run = StartRun(directory, 1000000);
  WaitForWorker(directory);
  run->Signal(SIGKILL);
  ASSERT_TRUE(run->WaitFor(kDeadline));
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

}  // namespace
}  // namespace lengthwise::end_to_end
