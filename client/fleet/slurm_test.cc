// Uses stand-ins for Slurm's programs; //tests/fleet:slurm_test uses the real ones.
#include "client/fleet/slurm.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using State = FleetJob::State;

TEST(SlurmTest, UnderstandsSqueue) {
  const auto jobs = ParseJobs(
      "41|RUNNING|None|2026-11-23T08:59:59\n42|PENDING|Resources|N/A\n"
      "43|FAILED|NonZeroExitCode|2026-11-23T07:00:05\n44|CANCELLED|None|N/A\n"
      "45|COMPLETED|None|N/A\n46|OUT_OF_MEMORY|OutOfMemory|N/A\n47|NODE_FAIL|NodeDown|N/A\n"
      "48|BOOT_FAIL|None|N/A\n49|TIMEOUT|TimeLimit|N/A\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::vector<State> states;
  for (const FleetJob& job : *jobs) states.push_back(job.state);
  ASSERT_THAT(states, ElementsAre(State::kRunning, State::kPending, State::kFailed,
                                  State::kCancelled, State::kEnded, State::kFailed, State::kFailed,
                                  State::kFailed, State::kEnded));
  EXPECT_EQ((*jobs)[1].id, 42);
  EXPECT_EQ((*jobs)[1].reason, "Resources");
  EXPECT_EQ((*jobs)[1].ended, absl::InfiniteFuture());
  EXPECT_EQ((*jobs)[2].ended,
            absl::FromCivil(absl::CivilSecond(2026, 11, 23, 7, 0, 5), absl::LocalTimeZone()));
  EXPECT_TRUE(ParseJobs("")->empty());
  // The user's own arrays and heterogeneous jobs of the same name.
  EXPECT_EQ(ParseJobs("101_[0-3]|PENDING|None|N/A\n101_0|RUNNING|None|N/A\n"
                      "102+1|RUNNING|None|N/A\n41|RUNNING|None|N/A\n")
                ->size(),
            1);
  EXPECT_FALSE(ParseJobs("slurm_load_jobs error").ok());
}

TEST(SlurmTest, WorkerIdsNameTheirJobs) {
  EXPECT_EQ(JobOfWorker("slurm-17-0"), 17);
  EXPECT_EQ(JobOfWorker("slurm-17-2"), 17);
  EXPECT_EQ(JobOfWorker("n07-cuda0-4711"), std::nullopt);
  EXPECT_EQ(JobOfWorker("slurm-x"), std::nullopt);
}

TEST(SlurmTest, LastLogLineIsTheWorkers) {
  const std::string directory = testing::TempDir() + "/logs";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/7.log") << "one\nlibtorch.so: cannot open shared object file\n\n"
                                      << "srun: error: n2: task 0: Exited with exit code 1\n";
  const Slurm slurm("fleet", directory);
  EXPECT_EQ(slurm.LastLine(7), "libtorch.so: cannot open shared object file");
  EXPECT_EQ(slurm.LastLine(8), "");
}

// The script runs with stand-ins for srun, squeue and date. srun's arguments contain the worker's.
class JobScriptTest : public testing::Test {
 protected:
  JobScriptTest()
      : directory_(absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Program("srun", "echo \"$@\" >\"$RESULT\"");
    Program("squeue", "echo 2026-11-23T10:00:00");
  }

  void Program(const std::string& name, const std::string& script) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0700);
  }

  std::string Run(const std::string& script, const std::string& environment) {
    std::ofstream(directory_ + "/job.sh") << script;
    const std::string result = directory_ + "/result";
    EXPECT_EQ(std::system(absl::StrCat("PATH=", directory_, ":$PATH RESULT=", result, " ",
                                       environment, " sh ", directory_, "/job.sh")
                              .c_str()),
              0);
    std::ifstream file(result);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const std::string directory_;
};

// Seconds.
int LifetimeIn(const std::string& command) {
  constexpr char kFlag[] = "--lifetime ";
  const size_t found = command.find(kFlag);
  return found == std::string::npos ? 0 : std::stoi(command.substr(found + sizeof(kFlag) - 1));
}

TEST_F(JobScriptTest, GivesTheWorkerItsServerAndAStaggeredLifetime) {
  const std::string script =
      JobScript({.worker_program = "/opt/it's here/lengthwise_worker",
                 .channel = {.server = "head:7070", .token_file = "/home/ada/w.token"},
                 .max_pack_size = 30});
  const std::string now = "$(($(date +%s) + 1000))";
  const std::string first = Run(script, absl::StrCat("SLURM_JOB_ID=40 SLURM_JOB_END_TIME=", now));
  EXPECT_THAT(first, HasSubstr("/opt/it's here/lengthwise_worker --server head:7070 --worker_id "
                               "slurm-40-0 --max_pack_size 30 --exit_when_idle 60s --token_file "
                               "/home/ada/w.token --lifetime "));
  // Time passes between the two calls of date.
  EXPECT_THAT(LifetimeIn(first), AllOf(Gt(900), Le(1000)));
  const std::string second =
      Run(script, absl::StrCat("SLURM_JOB_ID=45 SLURM_RESTART_COUNT=2 SLURM_CPUS_PER_TASK=4 ",
                               "LENGTHWISE_WORKER_FLAGS='--threads 2' SLURM_JOB_END_TIME=", now));
  EXPECT_THAT(second, HasSubstr("--cpus-per-task=4"));
  EXPECT_THAT(second, HasSubstr("slurm-45-2"));
  EXPECT_THAT(LifetimeIn(second), AllOf(Gt(800), Le(900)));
  EXPECT_THAT(second, HasSubstr("--threads 2"));
}

TEST_F(JobScriptTest, AsksSqueueForAnUnknownEnd) {
  const std::string script = JobScript({.worker_program = "w", .channel = {.server = "head:7070"}});
  EXPECT_THAT(Run(script, "SLURM_JOB_ID=40"), HasSubstr("--lifetime "));
  Program("squeue", "echo N/A");
  EXPECT_THAT(Run(script, "SLURM_JOB_ID=40"), Not(HasSubstr("--lifetime")));
}

}  // namespace
}  // namespace lengthwise::client
