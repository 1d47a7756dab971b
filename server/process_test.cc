// Tests of the server's process, from its starter's view.
#include "server/process.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/descriptors.h"
#include "platform/periodic_thread.h"
#include "platform/version.h"
#include "proto/catalogue_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "rpc/testing/test_certificates.h"
#include "rpc/token.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr int kDeadlineMs = 30'000;

// A child process whose stderr the test reads. Killed if it is still running at the end.
class Server {
 public:
  // `descriptors` is its limit of open descriptors; 0: the test's own limit. The process calls
  // `prepare` before the program begins.
  explicit Server(
      std::vector<std::string> arguments, rlim_t descriptors = 0,
      const std::function<void()>& prepare = [] {}) {
    arguments.insert(arguments.begin(), "server/process_test_server");
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      const rlimit limit = {descriptors, descriptors};
      if (descriptors > 0 && setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(126);
      prepare();
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    stderr_ = ends[0];
  }
  ~Server() {
    if (!waited_) {
      kill(pid_, SIGKILL);
      Wait();
    }
    close(stderr_);
  }

  // Reads stderr until it contains `text`.
  bool WaitForLine(const std::string& text) {
    while (log_.find(text) == std::string::npos) {
      if (!ReadLog()) return false;
    }
    return true;
  }
  // The exit code, or minus the signal.
  int Wait() {
    while (ReadLog()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    waited_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void Signal(int number) { kill(pid_, number); }
  // From now on the process gets no more descriptors.
  void TakeDescriptors() {
    const rlimit none = {3, 3};
    EXPECT_EQ(prlimit(pid_, RLIMIT_NOFILE, &none, nullptr), 0);
  }
  // Number of its open descriptors.
  int64_t Descriptors() const {
    return std::distance(std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/fd")),
                         std::filesystem::directory_iterator());
  }
  // The file that one of them is open on.
  std::string Descriptor(int number) const {
    return std::filesystem::read_symlink(absl::StrCat("/proc/", pid_, "/fd/", number)).string();
  }
  const std::string& log() const { return log_; }

 private:
  // False at the end of the process, or after the deadline, which kills it.
  bool ReadLog() {
    pollfd readable = {stderr_, POLLIN, 0};
    if (poll(&readable, 1, kDeadlineMs) != 1) {
      ADD_FAILURE() << "the server said nothing for " << kDeadlineMs << " ms after: " << log_;
      kill(pid_, SIGKILL);
      return false;
    }
    char buffer[4096];
    const ssize_t size = read(stderr_, buffer, sizeof(buffer));
    if (size <= 0) return false;
    log_.append(buffer, size);
    return true;
  }

  pid_t pid_ = 0;
  int stderr_ = -1;
  bool waited_ = false;
  std::string log_;
};

std::string ReadyFile() {
  return absl::StrCat(testing::TempDir(), "/",
                      testing::UnitTest::GetInstance()->current_test_info()->name(), ".ready");
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The lines of a serving server's ready file.
std::vector<std::string> Addresses(Server& server) {
  EXPECT_TRUE(server.WaitForLine("serving on"));
  std::ifstream file(ReadyFile());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Server Start(const std::string& metrics_listen = "") {
  return Server({"--listen=127.0.0.1:0", "--metrics_listen", metrics_listen, "--data_dir=/fake",
                 "--ready_file", ReadyFile()});
}

TEST(Process, ServesAtTheReadyFilesAddresses) {
  Server server = Start("127.0.0.1:0");
  const std::vector<std::string> addresses = Addresses(server);
  ASSERT_EQ(addresses.size(), 2u);
  EXPECT_THAT(addresses[0], MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  EXPECT_THAT(addresses[1], MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  EXPECT_NE(addresses[0], addresses[1]);

  const auto stub = v1::CatalogueService::NewStub(
      grpc::CreateChannel(addresses[0], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ListCatalogueEntriesResponse response;
  ASSERT_TRUE(stub->ListCatalogueEntries(&context, {}, &response).ok());
  EXPECT_GT(response.entries_size(), 0);

  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(server.log(), HasSubstr("stopping on SIGTERM"));
  EXPECT_NE(::access(ReadyFile().c_str(), F_OK), 0);
}

TEST(Process, OpenStreamsEndWithUnavailable) {
  Server server = Start();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(Addresses(server).at(0), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kDeadlineMs));
  const auto stream = stub->StreamEvents(&context);
  v1::StreamEventsRequest request;
  v1::StreamEventsResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  server.Signal(SIGINT);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.Wait(), 0);
}

TEST(Process, SecondSignalKillsAStuckServer) {
  for (const int second : {SIGTERM, SIGINT}) {
    Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/stuck"});
    ASSERT_TRUE(server.WaitForLine("serving on"));
    server.Signal(SIGTERM);
    ASSERT_TRUE(server.WaitForLine("a second signal stops at once"));
    server.Signal(second);
    EXPECT_EQ(server.Wait(), -second);
  }
}

TEST(Process, WithoutMetricsTheSecondLineIsEmpty) {
  Server server = Start();
  const std::vector<std::string> addresses = Addresses(server);
  ASSERT_EQ(addresses.size(), 2u);
  EXPECT_EQ(addresses[1], "");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

// For `prepare` of Server: standard input is a pipe that does not end.
void OpenPipe() {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0) _exit(126);
}

TEST(Process, PrivateServerIsItsUsersAlone) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", std::string(100, 'd'), "/",
                                             std::string(100, 'e'), "/", std::string(100, 'f'));
  std::filesystem::create_directories(directory);
  // Those of a server on the directory do not apply.
  Server maker({"--data_dir", directory, "--create_admin_token", directory + "/admin.token"});
  EXPECT_EQ(maker.Wait(), 0) << maker.log();
  Server server({"--private", "--data_dir", directory}, 0, OpenPipe);
  ASSERT_TRUE(server.WaitForLine(", data in ")) << server.log();
  const std::string lock = Contents(directory + "/LOCK");
  const std::string address =
      lock.substr(lock.find('\n') + 1, lock.rfind('\n') - lock.find('\n') - 1);
  EXPECT_THAT(address, testing::StartsWith("unix:/")) << lock;
  EXPECT_THAT(server.log(), HasSubstr("serving on " + address + ", data in "));
  const std::string path = address.substr(address.find('/'));
  struct stat status;
  ASSERT_EQ(stat(path.substr(0, path.rfind('/')).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);

  const auto stub = v1::CatalogueService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ListCatalogueEntriesResponse response;
  EXPECT_TRUE(stub->ListCatalogueEntries(&context, {}, &response).ok());

  if (geteuid() == 0) {
    sockaddr_un to = {};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof(to.sun_path) - 1);
    const platform::Descriptor other(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(seteuid(65534), 0);
    const int connected = connect(other.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    const int error = errno;
    ASSERT_EQ(seteuid(0), 0);
    EXPECT_EQ(connected, -1);
    EXPECT_EQ(error, EACCES);
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Process, UsedPortIsOneLineAndExitCodeOne) {
  Server first = Start();
  const std::string address = Addresses(first).at(0);
  Server second({"--listen", address, "--metrics_listen", "", "--data_dir=/fake"});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.log(), HasSubstr("ERROR cannot listen on " + address));
  EXPECT_EQ(std::count(second.log().begin(), second.log().end(), '\n'), 1) << second.log();
}

TEST(Process, FewDescriptorsAreRefused) {
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/fake"}, 63);
  EXPECT_EQ(server.Wait(), 1);
  EXPECT_THAT(server.log(), HasSubstr("this process may open 63 files, expected at least 64"));
}

TEST(Process, ClosedStandardStreamIsNoFileOfTheServer) {
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/fake"}, 0,
                [] { close(STDOUT_FILENO); });
  ASSERT_TRUE(server.WaitForLine("serving on"));
  EXPECT_EQ(server.Descriptor(STDOUT_FILENO), "/dev/null");
}

TEST(Process, LimitOfFileSizesIsAFullDisk) {
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/fake"}, 0, [] {
    const rlimit limit = {100 << 10, 100 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(server.Wait(), 1);
  EXPECT_THAT(server.log(), HasSubstr("disk full"));
}

TEST(Process, ProbeHasAPortOfItsOwn) {
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--probe_listen=127.0.0.1:0",
                 "--data_dir=/fake"});
  ASSERT_TRUE(server.WaitForLine("/healthz, data in "));
  EXPECT_THAT(server.log(), HasSubstr(", probes on http://127.0.0.1:"));
  Server taken({"--listen=127.0.0.1:0", "--metrics_listen", "", "--probe_listen=192.0.2.1:1",
                "--data_dir=/fake"});
  EXPECT_EQ(taken.Wait(), 1);
  EXPECT_THAT(taken.log(), HasSubstr("cannot serve probes on 192.0.2.1:1: "));
}

TEST(Process, LockedDataDirectoryIsExitCodeOne) {
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/locked"});
  EXPECT_EQ(server.Wait(), 1);
  EXPECT_THAT(server.log(), MatchesRegex("[^\n]*ERROR another server has /locked open\n"));
}

// A new directory for this test.
std::string Directory() {
  const std::string path = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

TEST(Process, FirstTokenClosesARunningServer) {
  const std::string directory = Directory();
  const std::string token_file = directory + "/admin.token";
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir", directory,
                 "--ready_file", ReadyFile()});
  const auto stub = v1::CatalogueService::NewStub(
      grpc::CreateChannel(Addresses(server).at(0), grpc::InsecureChannelCredentials()));
  const auto list = [&](const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::ListCatalogueEntriesResponse response;
    return stub->ListCatalogueEntries(&context, {}, &response).error_code();
  };
  EXPECT_EQ(list(""), grpc::StatusCode::OK);

  Server maker({"--data_dir", directory, "--create_admin_token", token_file});
  EXPECT_EQ(maker.Wait(), 0);
  const std::string token = rpc::ReadTokenFile(token_file).value();
  EXPECT_THAT(maker.log(), HasSubstr("to " + token_file));
  EXPECT_THAT(maker.log(), ::testing::Not(HasSubstr(token.substr(16))));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(list(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(list(token), grpc::StatusCode::OK);
  // Some refusals are logged, with the client's address.
  EXPECT_TRUE(
      server.WaitForLine("WARNING refused lengthwise.v1.CatalogueService/"
                         "ListCatalogueEntries to 127.0.0.1:"));

  // Once more with the same file: the file stays, and no unknown token is left.
  const std::string before = Contents(directory + "/tokens");
  Server again({"--data_dir", directory, "--create_admin_token", token_file});
  EXPECT_EQ(again.Wait(), 1);
  EXPECT_THAT(again.log(), HasSubstr("exists already"));
  EXPECT_EQ(rpc::ReadTokenFile(token_file).value(), token);
  EXPECT_EQ(Contents(directory + "/tokens"), before);
}

TEST(Process, FailedFirstTokenLeavesTheServerOpen) {
  const std::string directory = Directory();
  std::ofstream(directory + "/taken") << "a user's file";
  Server maker({"--data_dir", directory + "/data", "--create_admin_token", directory + "/taken"});
  EXPECT_EQ(maker.Wait(), 1);
  EXPECT_EQ(Contents(directory + "/taken"), "a user's file");
  for (const std::string file : {"/data/tokens", "/data/requires_tokens"}) {
    EXPECT_FALSE(std::filesystem::exists(directory + file)) << file;
  }
}

TEST(Process, RefusedServerLeavesTheReadyFile) {
  const std::string directory = Directory();
  const std::vector<std::string> arguments = {
      "--listen=127.0.0.1:0",    "--metrics_listen", "",
      "--data_dir=" + directory, "--ready_file",     ReadyFile()};
  Server server(arguments);
  ASSERT_FALSE(Addresses(server).empty());
  const std::string before = Contents(ReadyFile());
  Server second(arguments);
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_EQ(Contents(ReadyFile()), before);
}

// Registers a worker, which the server stores in a transaction.
void Call(const std::string& address) {
  const auto stub =
      v1::WorkerService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_worker_id("w");
  request.mutable_worker()->set_max_pack_size(1);
  request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  v1::SynchronizeResponse response;
  stub->Synchronize(&context, request, &response);
}

TEST(Process, ServerWhoseDatabaseIsLostEndsAndSaysWhy) {
  for (const bool deleted : {true, false}) {
    const std::string directory = Directory();
    const std::vector<std::string> arguments = {
        "--listen=127.0.0.1:0",    "--metrics_listen", "",
        "--data_dir=" + directory, "--ready_file",     ReadyFile()};
    Server server(arguments);
    const std::vector<std::string> addresses = Addresses(server);
    ASSERT_FALSE(addresses.empty());
    std::unique_ptr<Server> second;
    if (deleted) {
      std::filesystem::remove_all(directory);
    } else {
      std::filesystem::remove(directory + "/LOCK");
      second = std::make_unique<Server>(arguments);
      ASSERT_TRUE(second->WaitForLine("serving on"));
    }
    Call(addresses[0]);
    EXPECT_EQ(server.Wait(), 1);
    EXPECT_THAT(server.log(), HasSubstr(deleted ? "/lengthwise.db is gone"
                                                : "another server has opened this database"));
    if (second == nullptr) continue;
    const std::string ready = Contents(ReadyFile());
    EXPECT_NE(ready, "") << "the first one must leave the second one's ready file";
    Call(ready.substr(0, ready.find('\n')));
    second->Signal(SIGTERM);
    EXPECT_EQ(second->Wait(), 0);
  }
}

TEST(Process, LockFileHasTheAddress) {
  const std::string directory = Directory();
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=" + directory,
                 "--ready_file", ReadyFile()});
  const std::vector<std::string> addresses = Addresses(server);
  ASSERT_FALSE(addresses.empty());
  const std::string path = directory + "/LOCK";
  EXPECT_THAT(Contents(path), MatchesRegex("[0-9]+ [^\n]+\n" + addresses[0] + "\n"));
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(Contents(path), MatchesRegex("[0-9]+ [^\n]+\n"));
}

TEST(Process, LockFileSaysThatATokenIsNeeded) {
  const std::string directory = Directory();
  const std::string token = directory + "/admin.token";
  EXPECT_EQ(Server({"--data_dir=" + directory, "--create_admin_token=" + token}).Wait(), 0);
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=" + directory});
  ASSERT_TRUE(server.WaitForLine("serving on"));
  EXPECT_THAT(Contents(directory + "/LOCK"), HasSubstr("\nneeds credentials\n"));
}

TEST(Process, UnsafeOrMissingTokensPreventTheStart) {
  const std::string directory = Directory();
  const std::string data = directory + "/data";
  Server maker({"--data_dir", data, "--create_admin_token", directory + "/admin.token"});
  ASSERT_EQ(maker.Wait(), 0);
  const std::vector<std::string> arguments = {"--listen=127.0.0.1:0", "--metrics_listen", "",
                                              "--data_dir", data};
  const auto refusal = [&] {
    Server server(arguments);
    EXPECT_EQ(server.Wait(), 1);
    EXPECT_EQ(std::count(server.log().begin(), server.log().end(), '\n'), 1) << server.log();
    return server.log();
  };
  ASSERT_EQ(chmod((data + "/tokens").c_str(), 0666), 0);
  EXPECT_THAT(refusal(), HasSubstr("run `chmod 600 "));
  ASSERT_EQ(chmod((data + "/tokens").c_str(), 0600), 0);
  ASSERT_EQ(chmod(data.c_str(), 0777), 0);
  EXPECT_THAT(refusal(), HasSubstr("run `chmod go-w "));
  ASSERT_EQ(chmod(data.c_str(), 0700), 0);
  std::filesystem::remove(data + "/tokens");
  EXPECT_THAT(refusal(), HasSubstr("--remove_all_tokens"));

  Server remover({"--data_dir", data, "--remove_all_tokens"});
  EXPECT_EQ(remover.Wait(), 0);
  EXPECT_THAT(Contents(data + "/audit.log"), HasSubstr("lengthwise_server --remove_all_tokens"));
  Server open(arguments);
  EXPECT_TRUE(open.WaitForLine("open to everyone without a token"));
}

TEST(Process, AuditLogIsCompleteAfterACleanStop) {
  const std::string directory = Directory();
  const std::string data = directory + "/data";
  Server maker({"--data_dir", data, "--create_admin_token", directory + "/admin.token"});
  ASSERT_EQ(maker.Wait(), 0);
  const auto ask = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir", data,
        "--ready_file",         ReadyFile()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Server server(arguments);
    const auto stub = v1::CatalogueService::NewStub(
        grpc::CreateChannel(Addresses(server).at(0), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ListCatalogueEntriesResponse response;
    EXPECT_EQ(stub->ListCatalogueEntries(&context, {}, &response).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
    return server.log();
  };
  const std::string refused = "CatalogueService/ListCatalogueEntries";
  EXPECT_THAT(ask({}), HasSubstr("WARNING refused lengthwise.v1." + refused + " to 127.0.0.1:"));
  const std::string lines = Contents(data + "/audit.log");
  EXPECT_THAT(lines, HasSubstr("lengthwise_server --create_admin_token"));
  EXPECT_THAT(lines, HasSubstr(refused));
  ask({"--audit_log", directory + "/elsewhere"});
  EXPECT_THAT(Contents(directory + "/elsewhere"), HasSubstr(refused));
  ask({"--audit_log", "off"});
  EXPECT_EQ(Contents(data + "/audit.log"), lines);
  // The service continues, and logs once why it writes no audit log.
  EXPECT_THAT(ask({"--audit_log", "/dev/full"}), HasSubstr("No space left on device"));
  Server nowhere({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir", data, "--audit_log",
                  directory + "/none/audit.log"});
  EXPECT_EQ(nowhere.Wait(), 1);
  EXPECT_THAT(nowhere.log(), HasSubstr("/none/audit.log: No such file or directory"));
}

TEST(Process, RootLeavesTokensToTheDirectorysOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  // A directory that its owner cannot reach from outside, such as /var/lib/private/lengthwise.
  const std::string above = Directory();
  ASSERT_EQ(chmod(above.c_str(), 0700), 0);
  const std::string directory = above + "/data";
  std::filesystem::create_directory(directory);
  ASSERT_EQ(chown(directory.c_str(), 65534, 65534), 0);
  const std::string token_file = above + "/admin.token";
  Server maker({"--data_dir", directory, "--create_admin_token", token_file});
  EXPECT_EQ(maker.Wait(), 0) << maker.log();
  struct stat status;
  ASSERT_EQ(stat((directory + "/tokens").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534u);
  ASSERT_EQ(stat((directory + "/audit.log").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534u);
  ASSERT_EQ(stat(token_file.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0u);
}

TEST(Process, PublicServerNeedsTokens) {
  const std::string directory = Directory();
  rpc::TestAuthority authority(directory, "house");
  const rpc::TestAuthority::Pair pair = authority.Issue("server");
  std::vector<std::string> arguments = {
      "--listen=0.0.0.0:0", "--metrics_listen", "",          "--data_dir", directory,
      "--tls_certificate",  pair.certificate,   "--tls_key", pair.key};
  Server open(arguments);
  EXPECT_EQ(open.Wait(), 1);
  EXPECT_THAT(open.log(), HasSubstr("--create_admin_token"));
  Server maker({"--data_dir", directory, "--create_admin_token", directory + "/admin.token"});
  EXPECT_EQ(maker.Wait(), 0);
  arguments.insert(arguments.end(), {"--tls_client_ca", authority.ca()});
  Server closed(arguments);
  EXPECT_TRUE(closed.WaitForLine("with TLS"));
  closed.Signal(SIGTERM);
  EXPECT_EQ(closed.Wait(), 0);
}

TEST(Process, PlainTextServerThatOthersReachNeedsTokensOrAnOrder) {
  std::vector<std::string> arguments = {"--listen=0.0.0.0:0", "--metrics_listen", "", "--data_dir",
                                        Directory()};
  arguments.insert(arguments.end(), {"--insecure_api", "plain_text"});
  Server refused(arguments);
  EXPECT_EQ(refused.Wait(), 1);
  EXPECT_THAT(refused.log(), HasSubstr("--insecure_api open"));
  arguments.back() = "open";
  Server open(arguments);
  EXPECT_TRUE(open.WaitForLine("WARNING everyone who can reach 0.0.0.0:0 can do everything"));
  EXPECT_TRUE(open.WaitForLine("serving on"));
  open.Signal(SIGTERM);
  EXPECT_EQ(open.Wait(), 0);
}

TEST(Process, SighupReadsTheCertificatesAgain) {
  const std::string directory = Directory();
  rpc::TestAuthority authority(directory, "house");
  const auto use = [&](const rpc::TestAuthority::Pair& pair) {
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(pair.certificate, directory + "/tls.crt", over);
    std::filesystem::copy_file(pair.key, directory + "/tls.key", over);
  };
  use(authority.Issue("first"));
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir", directory,
                 "--tls_certificate", directory + "/tls.crt", "--tls_key", directory + "/tls.key"});
  EXPECT_TRUE(server.WaitForLine("tls.crt expires at ")) << "in an hour";
  ASSERT_TRUE(server.WaitForLine("serving on"));
  use(authority.Issue("second"));
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.WaitForLine("new connections use the new certificate"));
  use(authority.Issue("over", -absl::Minutes(1)));
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.WaitForLine("the old ones stay: "));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST(Process, UnusableCertificateIsOneLine) {
  const std::string directory = Directory();
  rpc::TestAuthority authority(directory, "house");
  const rpc::TestAuthority::Pair right = authority.Issue("server");
  const rpc::TestAuthority::Pair over = authority.Issue("over", -absl::Minutes(1));
  const auto log = [&](const std::string& certificate, const std::string& key) {
    Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir", directory,
                   "--tls_certificate", certificate, "--tls_key", key});
    EXPECT_EQ(server.Wait(), 1);
    EXPECT_EQ(std::count(server.log().begin(), server.log().end(), '\n'), 1) << server.log();
    return server.log();
  };
  EXPECT_THAT(log(over.certificate, over.key), HasSubstr(over.certificate + " expired at"));
  EXPECT_THAT(log(right.certificate, over.key), HasSubstr("belongs to another certificate"));
  EXPECT_THAT(log(directory + "/none.pem", right.key), HasSubstr("none.pem: No such file"));
}

TEST(Process, ExcessConnectionsDoNotStopTheServer) {
  constexpr int kDescriptors = 64;
  constexpr int kConnections = 200;
  constexpr int kConnectionsOfAnAddress = 25;
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/fake", "--ready_file",
                 ReadyFile()},
                kDescriptors);
  const std::string address = Addresses(server).at(0);
  const int64_t before = server.Descriptors();
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1)));
  const timeval patience = {.tv_sec = kDeadlineMs / 1000, .tv_usec = 0};
  std::vector<int> connections;
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(socket(AF_INET, SOCK_STREAM, 0));
    // From 127.0.0.2, 127.0.0.3, ...
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i / kConnectionsOfAnAddress);
    ASSERT_EQ(bind(connections.back(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
    ASSERT_EQ(connect(connections.back(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    ASSERT_EQ(setsockopt(connections.back(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
              0);
  }
  // The server accepts each connection, and sends its first bytes or hangs up.
  for (const int connection : connections) {
    char byte = 0;
    ASSERT_GE(recv(connection, &byte, 1, 0), 0) << std::strerror(errno);
  }
  // Three eighths of the descriptors are for connections, three for each. Those of a connection
  // that made room for another one may still be open.
  const int64_t most = before + kDescriptors * 3 / 8;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
  int64_t open = server.Descriptors();
  while (open > most && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    open = server.Descriptors();
  }
  EXPECT_LE(open, most);
  EXPECT_GT(open, before) << "some connections are open";

  // Another address still gets a connection.
  const auto stub = v1::CatalogueService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kDeadlineMs));
  v1::ListCatalogueEntriesResponse response;
  const grpc::Status status = stub->ListCatalogueEntries(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const int connection : connections) close(connection);
}

TEST(Process, UnreachableServerExits) {
  Server server({"--listen=127.0.0.1:0", "--metrics_listen", "", "--data_dir=/fake", "--ready_file",
                 ReadyFile(), "--self_check_interval=20ms"});
  ASSERT_FALSE(Addresses(server).empty());
  server.TakeDescriptors();
  EXPECT_EQ(server.Wait(), 1);
  EXPECT_THAT(server.log(), HasSubstr("ERROR exiting: the server cannot be reached from its "
                                      "own machine (Too many open files)"));
}

TEST(Process, WrongFlagsAreExitCodeTwo) {
  Server server({"--no_such_flag"});
  EXPECT_EQ(server.Wait(), 2);
  EXPECT_THAT(server.log(), HasSubstr("--no_such_flag"));
}

TEST(Process, ExitsWithItsParent) {
  // A parent that starts the server and waits for it. When it is killed, the server gets the
  // signal.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() == 0) {
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl("server/process_test_server", "lengthwise_server", "--listen=127.0.0.1:0",
            "--metrics_listen", "", "--data_dir=/fake", "--exit_with_parent", nullptr);
      _exit(127);
    }
    close(ends[0]);
    close(ends[1]);
    pause();
    _exit(0);
  }
  close(ends[1]);
  std::string log;
  bool killed = false;
  while (true) {
    pollfd readable = {ends[0], POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, kDeadlineMs), 1) << log;
    char buffer[4096];
    const ssize_t size = read(ends[0], buffer, sizeof(buffer));
    if (size <= 0) break;  // the last process with the pipe, the server, has ended
    log.append(buffer, size);
    if (!killed && log.find("serving on") != std::string::npos) {
      kill(parent, SIGKILL);
      waitpid(parent, nullptr, 0);
      killed = true;
    }
  }
  EXPECT_TRUE(killed);
  EXPECT_THAT(log, HasSubstr("stopping on SIGTERM"));
  close(ends[0]);
}

TEST(SelfCheck, GivesUpAfterThreeFailuresInARow) {
  const absl::Status failed = absl::UnavailableError("nothing answers");
  const std::vector<absl::Status> answers = {failed, failed, absl::OkStatus(),
                                             failed, failed, failed};
  size_t asked = 0;
  absl::Notification given_up;
  absl::Status reason;
  {
    const platform::PeriodicThread check(absl::Milliseconds(1),
                                         SelfCheck([&] { return answers.at(asked++); },
                                                   [&](const absl::Status& status) {
                                                     reason = status;
                                                     given_up.Notify();
                                                   }));
    ASSERT_TRUE(given_up.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_EQ(asked, answers.size());
  EXPECT_EQ(reason, failed);
}

}  // namespace
}  // namespace lengthwise::server
