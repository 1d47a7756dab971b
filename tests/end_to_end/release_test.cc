// Compatibility with an earlier release, whose programs are in $LENGTHWISE_OTHER_RELEASE
// (tests/end_to_end/build_release.sh builds them): every pair that docs/releasing.md promises must
// work. Skipped without the variable.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/version.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLease = absl::Seconds(10);

// Paths of one release's programs.
struct Programs {
  std::string server;
  std::string worker;
  std::string client;
};

class ReleaseTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("LENGTHWISE_OTHER_RELEASE");
    if (folder == nullptr || *folder == '\0') {
      GTEST_SKIP() << "LENGTHWISE_OTHER_RELEASE is not set to a folder with an earlier release's "
                      "programs; tests/run.sh --long=releases builds them";
    }
    old_ = {.server = absl::StrCat(folder, "/lengthwise_server"),
            .worker = absl::StrCat(folder, "/lengthwise_worker"),
            .client = absl::StrCat(folder, "/lengthwise")};
    directory_ = absl::StrCat(testing::TempDir(), "/",
                              testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  Result Run(const std::string& client, const Server& server, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), client);
    arguments.insert(arguments.end(), {"--server", server.address()});
    return RunProgram(arguments, directory_ + "/output");
  }

  // Returns the client's output. The command must succeed.
  std::string Ask(const std::string& client, const Server& server,
                  const std::vector<std::string>& arguments) {
    const Result result = Run(client, server, arguments);
    EXPECT_EQ(result.code, 0) << arguments[0] << ": " << result.output;
    return result.output;
  }

  // Returns the path of a new file in the test's directory.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    return path;
  }

  // Submits an experiment, trains it and returns its results as CSV.
  std::string Train(const Programs& programs) {
    Server server(directory_, kLease, {}, programs.server);
    server.Start();
    const auto worker = StartWorker(server, directory_, programs.worker);
    Ask(programs.client, server, {"submit", Write("tiny.yaml", kTinySpecification), "--watch"});
    EXPECT_THAT(Ask(programs.client, server, {"list"}), HasSubstr("tiny-1"));
    Ask(programs.client, server, {"show", "tiny-1/0"});
    Ask(programs.client, server, {"logs", "tiny-1/0"});
    Ask(programs.client, server, {"workers"});
    const std::string results =
        Ask(programs.client, server, {"results", "tiny", "--output", "csv"});
    worker->Terminate(kDeadline);
    server.Kill();
    return results;
  }

  // Returns the message of a worker that the server rejects.
  std::string RefusalOf(const std::string& worker, const std::string& server_program) {
    Server server(directory_, kLease, {}, server_program);
    server.Start();
    const Result result = RunProgram({worker, "--server", server.address(), "--device", "cpu",
                                      "--metrics_listen", "127.0.0.1:0"},
                                     directory_ + "/output");
    EXPECT_GT(result.code, 0);
    server.Kill();
    return result.output;
  }

  Programs old_;
  std::string directory_;
};

// 0.1.0 has version 1 of the worker API.
TEST_F(ReleaseTest, OldWorkerIsToldToUpgrade) {
  EXPECT_THAT(RefusalOf(old_.worker, kServer),
              HasSubstr(absl::StrCat("version 1 of the worker API, the server ",
                                     platform::kWorkerApiVersion, "; upgrade the worker")));
}

TEST_F(ReleaseTest, OldClientAsksThisServer) {
  EXPECT_THAT(Train({kServer, kWorker, old_.client}), HasSubstr("tiny-1"));
}

// docs/releasing.md names these commands.
TEST_F(ReleaseTest, ThisClientAsksAnOldServer) {
  Server server(directory_, kLease, {}, old_.server);
  server.Start();
  const auto worker = StartWorker(server, directory_, old_.worker);
  const std::string tiny = Write("tiny.yaml", kTinySpecification);
  EXPECT_THAT(Ask(kClient, server, {"submit", tiny, "--watch"}),
              AllOf(HasSubstr("Submitted tiny-1"), HasSubstr("step 10/10"), HasSubstr("done")));
  EXPECT_THAT(Ask(kClient, server, {"list"}), HasSubstr("tiny-1"));
  EXPECT_THAT(Ask(kClient, server, {"workers"}), HasSubstr("idle"));
  EXPECT_THAT(Ask(kClient, server, {"storage"}), HasSubstr("database"));
  EXPECT_THAT(Ask(kClient, server, {"auth", "whoami"}), HasSubstr("anonymous (admin)"));
  EXPECT_THAT(Ask(kClient, server, {"doctor"}), HasSubstr("the server 0.1.0"));
  Ask(kClient, server, {"backup", "nightly"});

  // The server finds names of experiments and trials for clients since 0.3.0.
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"show", "tiny-1"},
           {"show", "tiny-1/0"},
           {"logs", "tiny-1/0"},
           {"watch", "tiny-1"},
           {"results", "tiny-1", "--output", "csv"},
           {"cancel", "tiny-1", "--yes"},
           {"delete", "tiny-1", "--yes"},
       }) {
    const Result result = Run(kClient, server, command);
    EXPECT_EQ(result.code, 1) << command[0];
    EXPECT_THAT(result.output, HasSubstr("is of an older release without this call; upgrade the "
                                         "server, or use a client of its release"))
        << command[0];
  }
  const std::string newer = absl::StrReplaceAll(
      kTinySpecification, {{"{name: encoder, blocks: 1, heads: 2, d_model: 16}", "lstm"}});
  const Result result = Run(kClient, server, {"submit", Write("newer.yaml", newer)});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.output, HasSubstr("the server is of an older release; upgrade the server"));
  EXPECT_THAT(Ask(old_.client, server, {"results", "tiny", "--output", "csv"}),
              HasSubstr("tiny-1"));
  worker->Terminate(kDeadline);
  server.Kill();
}

// It does not know the call of this worker.
TEST_F(ReleaseTest, OldServerIsToBeUpgraded) {
  EXPECT_THAT(RefusalOf(kWorker, old_.server),
              HasSubstr("the server is of release 0.2 or older, and this worker is newer; upgrade "
                        "the server"));
}

TEST_F(ReleaseTest, OldDataDirectoryOpens) {
  const std::string before = Train(old_);
  EXPECT_THAT(before, HasSubstr("tiny-1"));
  Server server(directory_, kLease);
  server.Start();
  for (const std::string& client : {old_.client, std::string(kClient)}) {
    EXPECT_EQ(Ask(client, server, {"results", "tiny", "--output", "csv"}), before) << client;
  }
  EXPECT_THAT(Ask(kClient, server, {"show", "tiny-1/0"}), HasSubstr("lengthwise 0.1.0"));
  // Writes to it, too.
  Ask(kClient, server, {"submit", directory_ + "/tiny.yaml"});
  EXPECT_THAT(Ask(kClient, server, {"list"}), HasSubstr("tiny-2"));
  server.Kill();
}

}  // namespace
}  // namespace lengthwise::end_to_end
