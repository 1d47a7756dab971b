#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "client/commands/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CommandsTest, ListsWorkers) {
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("No workers yet."));
  v1::Worker worker;
  worker.set_worker_id("n07-cuda0");
  worker.set_alive(true);
  worker.add_trials("experiments/e-1/trials/t");
  worker.set_steps_per_second(38.06);
  server_.AddWorker(worker);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("n07-cuda0  busy"));
  EXPECT_THAT(out_, HasSubstr("38.1"));
}

TEST_F(CommandsTest, StoppedWorkerIsNotLost) {
  v1::Worker worker;
  worker.set_worker_id("lost");
  server_.AddWorker(worker);
  worker.set_worker_id("stopped");
  worker.set_stopped(true);
  server_.AddWorker(worker);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("lost     lost "));
  EXPECT_THAT(out_, HasSubstr("stopped  stopped "));
  EXPECT_EQ(Run({"workers", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("worker,alive,stopped,"));
}

// Slurm's programs are stand-ins that note how they were called; //tests/fleet:slurm_test has the
// real ones.
TEST_F(CommandsTest, WorkersUpSubmitsAJobForEachPackThatWaits) {
  const std::string directory = testing::TempDir() + "/stand-ins";
  std::filesystem::create_directories(directory);
  const auto program = [&](const std::string& name, const std::string& script) {
    std::ofstream(directory + "/" + name) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(directory + "/" + name, std::filesystem::perms::owner_all);
  };
  program("squeue", "echo '7|PENDING|Resources'");
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
  v1::GetWantedWorkersResponse wanted;
  wanted.set_runnable_packs(4);
  wanted.set_idle_workers(1);
  server_.SetWantedWorkers(wanted);
  EXPECT_EQ(Run(up), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("4 packs wait; 0 busy, 1 idle workers; 0 running, 1 pending jobs; "
                              "submitted 8, 8\n"));
  setenv("PATH", path.c_str(), 1);
  std::ifstream calls(directory + "/calls");
  std::string call;
  std::getline(calls, call);
  EXPECT_THAT(call, HasSubstr("--no-requeue"));
  EXPECT_THAT(call, HasSubstr(" --mem-per-cpu=2G --gres=gpu:1 ")) << "as they were written";
  std::ifstream scripts(directory + "/scripts");
  const std::string script((std::istreambuf_iterator<char>(scripts)), {});
  EXPECT_THAT(script, HasSubstr("'/opt/worker' --server '" + server_.address() + "'"));
  EXPECT_THAT(script, HasSubstr("--max_pack_size 30")) << "a GPU is asked for";
}

TEST_F(CommandsTest, BacksUpAndShowsTheServersDisk) {
  EXPECT_EQ(Run({"backup", "monday"}), kSuccess);
  EXPECT_EQ(
      out_,
      "Backed up 2.0 MiB to /data/backups/monday on the server's own disk: copy it to another "
      "machine. To go back to it:\n"
      "  lengthwise_server --data_dir NEW --restore /data/backups/monday\n");
  EXPECT_EQ(Run({"backup", "taken"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is a backup \"taken\" already"));
  v1::Storage storage;
  storage.set_data_dir("/data");
  storage.set_database_bytes(5 << 20);
  storage.set_artifact_bytes(int64_t{7} << 30);
  storage.set_artifacts(4950);
  storage.set_free_bytes(int64_t{100} << 30);
  v1::Backup& backup = *storage.add_backups();
  backup.set_name("monday");
  backup.set_bytes(1 << 30);
  server_.SetStorage(storage);
  EXPECT_EQ(Run({"storage"}), kSuccess);
  for (const char* part : {"/data", "5.0 MiB", "7.0 GiB in 4,950", "100.0 GiB", "monday"}) {
    EXPECT_THAT(out_, HasSubstr(part));
  }
  EXPECT_EQ(Run({"storage", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)[3]["name"], "monday");
}

TEST_F(CommandsTest, TheDoctorFindsWhatIsWrongAndSaysWhatToDo) {
  setenv("LENGTHWISE_CONFIG", "", 1);
  v1::Server server;
  server.set_program_version("0.0.1");
  server.mutable_time()->set_seconds(-3600);  // an hour behind
  server_.SetServer(server);
  v1::Storage storage;
  storage.set_free_bytes(int64_t{1} << 40);
  server_.SetStorage(storage);
  // Warnings alone are no failure; the programs that `run` starts are not beside this test.
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
  EXPECT_EQ(Run({"doctor"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("→ install the same build of both"));

  EXPECT_EQ(Run({"doctor", "--server", "127.0.0.1:1"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("cannot reach a server at 127.0.0.1:1 (Connection refused)"));
  server_.SetCaller({grpc::StatusCode::UNAUTHENTICATED, "the token 3f ended on 2026-01-01"}, {});
  EXPECT_EQ(Run({"doctor"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("the token 3f ended on 2026-01-01"));
  EXPECT_THAT(out_, HasSubstr("1 failure"));
}

}  // namespace
}  // namespace lengthwise::client
