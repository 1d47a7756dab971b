#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CommandsTest, StoppedWorkerIsNotLost) {
  v1::ListWorkersResponse workers;
  v1::Worker worker;
  worker.set_worker_id("lost");
  *workers.add_workers() = worker;
  worker.set_worker_id("stopped");
  worker.set_stopped(true);
  *workers.add_workers() = worker;
  v1::Worker busy;
  busy.set_worker_id("n07-cuda0");
  busy.set_alive(true);
  busy.add_trials("experiments/e-1/trials/t");
  busy.set_steps_per_second(38.06);
  *workers.add_workers() = busy;
  server_.AnswerAlways("ListWorkers", workers);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("lost +lost "));
  EXPECT_THAT(out_, ContainsRegex("stopped +stopped "));
  EXPECT_THAT(out_, ContainsRegex("n07-cuda0 +busy .* 38.1 "));
  EXPECT_EQ(Run({"workers", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("worker,alive,stopped,"));
}

TEST_F(CommandsTest, UnfitWorkersSayWhy) {
  v1::Worker worker;
  worker.set_worker_id("n07-cpu");
  worker.set_alive(true);
  worker.set_fault("No space left on device");
  v1::ListWorkersResponse workers;
  *workers.add_workers() = worker;
  v1::Worker& ended = *workers.add_workers();
  ended.set_worker_id("n08-cuda0");
  ended.set_stopped(true);
  ended.set_fault("its GPU is lost");
  server_.AnswerAlways("ListWorkers", workers);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("n07-cpu +unfit "));
  EXPECT_THAT(out_, HasSubstr("n07-cpu takes only some of the trials: No space left on device"));
  EXPECT_THAT(out_, HasSubstr("n08-cuda0 stopped: its GPU is lost"));
  EXPECT_EQ(Run({"workers", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr(",fault,"));
  EXPECT_THAT(out_, HasSubstr(",No space left on device,"));
}

TEST_F(CommandsTest, WorkersWithWrongClocksAreNamed) {
  v1::Worker worker;
  worker.set_alive(true);
  v1::ListWorkersResponse workers;
  for (const auto& [id, ahead] :
       std::map<std::string, double>{{"n07-cpu", 600}, {"n08-cpu", -7}, {"n09-cpu", 4}}) {
    worker.set_worker_id(id);
    worker.set_clock_ahead_seconds(ahead);
    *workers.add_workers() = worker;
  }
  server_.AnswerAlways("ListWorkers", workers);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("The clock of n07-cpu is 10:00 ahead of the server's; set both "));
  EXPECT_THAT(out_, HasSubstr("The clock of n08-cpu is 0:07 behind the server's; set both "));
  EXPECT_THAT(out_, Not(HasSubstr("The clock of n09-cpu")));
}

TEST_F(CommandsTest, DrainedWorkersAndAPausedQueueSayWhy) {
  v1::Worker worker;
  worker.set_worker_id("n07-cpu");
  worker.set_alive(true);
  worker.set_hold("drained by ada: new disks");
  v1::ListWorkersResponse workers;
  *workers.add_workers() = worker;
  worker.set_worker_id("n08-cpu");
  worker.add_trials("experiments/e-1/trials/t");
  *workers.add_workers() = worker;
  workers.set_queue_pause("paused by ada");
  server_.AnswerAlways("ListWorkers", workers);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("n07-cpu +drained "));
  EXPECT_THAT(out_, ContainsRegex("n08-cpu +draining "));
  EXPECT_THAT(out_, HasSubstr("n07-cpu is drained by ada: new disks; `lengthwise workers resume "
                              "n07-cpu` ends that\n"));
  EXPECT_THAT(out_, HasSubstr("The queue is paused by ada. No trial starts until `lengthwise "
                              "queue resume`.\n"));
}

TEST_F(CommandsTest, QueueIsPausedAndResumed) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification)}), kSuccess) << err_;
  EXPECT_EQ(Run({"queue", "resume"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("the queue is not paused"));
  EXPECT_EQ(Run({"queue", "pause", "--reason", "new disks"}), kSuccess) << err_;
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("The queue is paused: new disks. No trial starts until"));
  EXPECT_EQ(Run({"show", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("waits: the queue is paused: new disks"));
  EXPECT_EQ(Run({"queue", "resume"}), kSuccess) << err_;
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("paused")));
  EXPECT_EQ(Run({"workers", "drain", "n07-cpu"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no worker \"n07-cpu\"; `lengthwise workers` lists them"));
}

TEST_F(CommandsTest, WorkersShowTheirKernels) {
  v1::Worker worker;
  worker.set_worker_id("n07-cuda0");
  worker.set_alive(true);
  worker.mutable_provenance()->set_device("NVIDIA H100");
  v1::ListWorkersResponse workers;
  *workers.add_workers() = worker;
  server_.AnswerAlways("ListWorkers", workers);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("kernels"))) << "no worker reports any";
  worker.set_worker_id("n07-cuda1");
  worker.mutable_provenance()->set_kernels("attention fused 3.05x");
  *workers.add_workers() = worker;
  server_.AnswerAlways("ListWorkers", workers);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("kernels\n"));
  EXPECT_THAT(out_, ContainsRegex("n07-cuda1 .* attention fused 3.05x\n"));
}

// Stand-ins for Slurm's programs record their arguments; //tests/fleet:slurm_test uses the real
// ones.
TEST_F(CommandsTest, WorkersUpSubmitsAJobPerWaitingPack) {
  const std::string directory = testing::TempDir() + "/stand-ins";
  std::filesystem::create_directories(directory);
  const auto program = [&](const std::string& name, const std::string& script) {
    std::ofstream(directory + "/" + name) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(directory + "/" + name, std::filesystem::perms::owner_all);
  };
  program("squeue", "echo '7|PENDING|Resources|N/A'");
  program("sbatch", "echo \"$@\" >>" + directory +
                        "/calls; for last; do :; done; cat \"$last\" >>" + directory +
                        "/scripts; echo 8");
  const std::string path = getenv("PATH");
  setenv("PATH", (directory + ":" + path).c_str(), 1);
  const std::vector<std::string> up = {
      "workers",   "up",      "--slurm", "--once",           "--worker",    "/opt/worker",
      "--log-dir", directory, "--",      "--mem-per-cpu=2G", "--gres=gpu:1"};
  EXPECT_EQ(Run(up), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("0 packs wait; 0 busy, 0 idle workers\n"));
  EXPECT_THAT(err_, HasSubstr("warning: jobs on other machines cannot reach " + server_.address() +
                              "; pass --server HOST:PORT"));
  v1::GetWantedWorkersResponse wanted;
  wanted.set_runnable_packs(4);
  wanted.set_idle_workers(1);
  server_.AnswerAlways("GetWantedWorkers", wanted);
  EXPECT_EQ(Run(up), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("4 packs wait; 0 busy, 1 idle workers; 0 running, 1 pending jobs; "
                              "submitted 8, 8\n"));
  for (const char* array : {"--array=0-3", "--arr", "-a0-3"}) {
    std::vector<std::string> with = up;
    with.push_back(array);
    EXPECT_EQ(Run(with), kUsage) << array;
    EXPECT_THAT(err_, HasSubstr("leave --array out"));
  }
  setenv("PATH", path.c_str(), 1);
  std::ifstream calls(directory + "/calls");
  std::string call;
  std::getline(calls, call);
  EXPECT_THAT(call, HasSubstr("--no-requeue"));
  EXPECT_THAT(call, HasSubstr(" --mem-per-cpu=2G --gres=gpu:1 ")) << "as they were written";
  std::ifstream scripts(directory + "/scripts");
  const std::string script((std::istreambuf_iterator<char>(scripts)), {});
  EXPECT_THAT(script, HasSubstr("/opt/worker --server " + server_.address() + " "));
  EXPECT_THAT(script, HasSubstr("--max_pack_size 30")) << "a GPU is asked for";
}

v1::OwnerUsage SomeUsage() {
  v1::OwnerUsage usage;
  usage.set_owner("ada");
  usage.set_experiments(3);
  usage.set_bytes(2048);
  usage.set_trials(1234);
  usage.set_steps(5678);
  usage.set_worker_seconds(125);
  return usage;
}

TEST_F(CommandsTest, StorageShowsTheSizesOfTheServersDisk) {
  v1::Storage storage;
  storage.set_database_bytes(5 << 20);
  storage.set_artifact_bytes(int64_t{7} << 30);
  storage.set_artifacts(4950);
  storage.set_free_bytes(int64_t{100} << 30);
  server_.AnswerAlways("GetStorage", storage);
  EXPECT_EQ(Run({"storage"}), kSuccess);
  EXPECT_THAT(out_, testing::AllOf(HasSubstr("5.0 MiB"), HasSubstr("7.0 GiB in 4,950"),
                                   HasSubstr("100.0 GiB")));
  EXPECT_THAT(out_, testing::Not(HasSubstr("owner")));
  *storage.add_usage() = SomeUsage();
  server_.AnswerAlways("GetStorage", storage);
  EXPECT_EQ(Run({"storage"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("ada +3 +2.0 KiB +1,234 +5,678 +2:05\n"));
}

TEST_F(CommandsTest, ListShowsWhatOwnersHaveUsed) {
  v1::ListExperimentsResponse list;
  *list.add_usage() = SomeUsage();
  server_.AnswerAlways("ListExperiments", list);
  EXPECT_EQ(Run({"list", "--usage", "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("owner +experiments +disk +trials +steps +worker time\n"));
  const auto requests = server_.Requests<v1::ListExperimentsRequest>("ListExperiments");
  ASSERT_THAT(requests, testing::SizeIs(1));
  EXPECT_TRUE(requests[0].include_usage());
  EXPECT_EQ(requests[0].owner(), "ada");
  EXPECT_EQ(Run({"list", "--usage", "--output", "csv"}), kSuccess);
  EXPECT_EQ(out_,
            "owner,experiments,bytes,trials,steps,worker_seconds\nada,3,2048,1234,5678,125\n");
}

TEST_F(CommandsTest, VersionNamesBuildWorkerAndLibTorch) {
  const std::string worker =
      File("worker", "#!/bin/sh\necho 'lengthwise_worker 1 (a)'; echo LibTorch 2; echo no GPU\n");
  chmod(worker.c_str(), 0755);
  setenv("LENGTHWISE_WORKER_BINARY", worker.c_str(), 1);
  EXPECT_EQ(Run({"--version"}), kSuccess);
  EXPECT_THAT(out_, testing::MatchesRegex("lengthwise [0-9.]+( \\(.*\\))?\n"
                                          "built by [^\n]+\n"
                                          "lengthwise_worker 1 \\(a\\)\nLibTorch 2\nno GPU\n"));
  setenv("LENGTHWISE_WORKER_BINARY", "/nowhere/worker", 1);
  EXPECT_EQ(Run({"--version"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\nno worker: "));
  unsetenv("LENGTHWISE_WORKER_BINARY");
}

TEST_F(CommandsTest, DoctorFindsFaultsAndAdvises) {
  setenv("LENGTHWISE_CONFIG", "", 1);
  server_.Edit<v1::Server>("GetServer", [](v1::Server& server) {
    server.set_program_version("0.0.1");
    server.mutable_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) - 3600);
  });
  v1::Storage storage;
  storage.set_free_bytes(int64_t{1} << 40);
  server_.AnswerAlways("GetStorage", storage);
  setenv("LENGTHWISE_PYTHON_NETWORKS", "/bin/false", 1);
  // Warnings alone are no failure: the programs that `run` starts are not next to this test.
  EXPECT_EQ(Run({"doctor", "--output", "json"}), kSuccess) << out_;
  std::map<std::string, std::string> verdicts;
  for (const nlohmann::json& finding : nlohmann::json::parse(out_)) {
    verdicts[finding["subject"]] = finding["verdict"];
    EXPECT_EQ(finding["verdict"] == "ok", finding["advice"] == "") << finding;
  }
  EXPECT_EQ(verdicts["server"], "ok");
  EXPECT_EQ(verdicts["versions"], "warn");
  EXPECT_EQ(verdicts["clock"], "warn");
  EXPECT_EQ(verdicts["workers"], "warn");
  EXPECT_EQ(verdicts["server's disk"], "ok");
  EXPECT_EQ(verdicts["own networks"], "skipped");
  EXPECT_EQ(Run({"doctor"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("→ install the same build of both"));

  EXPECT_EQ(Run({"doctor", "--server", "127.0.0.1:1"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("cannot reach a server at 127.0.0.1:1 (Connection refused)"));
  for (const std::string rpc : {"GetServer", "GetCaller"}) {
    server_.RefuseAlways(rpc,
                         {grpc::StatusCode::UNAUTHENTICATED, "the token 3f ended on 2026-01-01"});
  }
  EXPECT_EQ(Run({"doctor"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("the token 3f ended on 2026-01-01"));
  EXPECT_THAT(out_, HasSubstr("1 failure"));
}

TEST_F(CommandsTest, DoctorAsksOnlyWhatItsRoleMay) {
  v1::Caller caller;
  caller.set_principal("ada");
  size_t lists = 0, storages = 0;
  for (const v1::Role role : {v1::WORKER, v1::SUBMITTER, v1::ADMIN}) {
    caller.set_role(role);
    server_.AnswerAlways("GetCaller", caller);
    Run({"doctor"});
    lists += role != v1::WORKER;
    storages += role == v1::ADMIN;
    EXPECT_EQ(server_.Requests<v1::ListWorkersRequest>("ListWorkers").size(), lists);
    EXPECT_EQ(server_.Requests<v1::GetStorageRequest>("GetStorage").size(), storages);
    EXPECT_EQ(absl::StrContains(out_, "only administrators may see it"), role != v1::ADMIN);
  }
}

}  // namespace
}  // namespace lengthwise::client
