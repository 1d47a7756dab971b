// Validates the deployment files with the tools that read them, if these are installed.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"
#include "tests/monitoring/command.h"
#include "yaml-cpp/yaml.h"

namespace lengthwise::monitoring_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Every "--name" in a text.
std::vector<std::string> Options(const std::string& text) {
  std::vector<std::string> options;
  for (size_t start = text.find("--"); start != std::string::npos; start = text.find("--", start)) {
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-", start);
    options.push_back(text.substr(start, end - start));
    start += 2;
  }
  return options;
}

// A program's options, from its --help, where each begins a line.
std::vector<std::string> OptionsOf(const std::string& program) {
  std::vector<std::string> options;
  for (const std::string& rest : NamesBehind(RunCommand({program, "--help"}).output, {"--"})) {
    options.push_back(Options("--" + rest).front());
  }
  return options;
}

TEST(SystemdTest, UnitsAreValid) {
  if (FindProgram("systemd-analyze").empty()) GTEST_SKIP() << "systemd-analyze is not installed";
  // It checks that the programs exist; any executable will do.
  const std::string directory = testing::TempDir() + "/units";
  std::filesystem::create_directories(directory);
  std::vector<std::string> command = {FindProgram("systemd-analyze"), "verify", "--man=no"};
  const std::string users = ReadText("deploy/systemd/lengthwise.sysusers.conf");
  for (const char* unit :
       {"lengthwise-server.service", "lengthwise-worker@.service", "lengthwise-fleet@.service"}) {
    const std::string path = absl::StrCat(directory, "/", unit);
    std::string text = ReadText(absl::StrCat("deploy/systemd/", unit));
    // The fleet's user is somebody's account, and no unit waits for it.
    const bool is_fleet = absl::StrContains(unit, "fleet");
    EXPECT_THAT(text, HasSubstr(is_fleet ? "\nType=exec\n" : "\nType=notify\n"));
    // Tokens, keys and volumes belong to a user that exists while the service does not run.
    const std::vector<std::string> user = NamesBehind(text, {"User="});
    ASSERT_EQ(user.size(), 1U) << unit;
    if (!is_fleet) {
      EXPECT_THAT(users, HasSubstr(absl::StrCat("\nu ", user[0], " - ")));
    }
    // Exit code 2 means wrong flags.
    EXPECT_THAT(text, HasSubstr("\nRestartPreventExitStatus=2\n"));
    for (const char* program : {"lengthwise_server", "lengthwise_worker", "lengthwise"}) {
      text = absl::StrReplaceAll(text, {{absl::StrCat("/usr/local/bin/", program), "/bin/true"}});
    }
    std::ofstream(path) << text;
    command.push_back(path);
  }
  const CommandResult result = RunCommand(command);
  EXPECT_TRUE(result.ok) << result.output;
  EXPECT_EQ(result.output, "");
}

TEST(SystemdTest, WorkerKeepsItsGpus) {
  const std::string worker = ReadText("deploy/systemd/lengthwise-worker@.service");
  // ProtectClock= implies DeviceAllow=, which excludes all other devices.
  for (const char* setting :
       {"PrivateDevices=", "ProtectClock=", "DeviceAllow=", "DevicePolicy="}) {
    EXPECT_THAT(NamesBehind(worker, {setting}), testing::IsEmpty()) << setting;
  }
}

// Plays systemd: receives one program's notifications.
class ServiceManager {
 public:
  explicit ServiceManager(std::vector<std::string> command)
      : name_(absl::StrCat("@lengthwise-test-", getpid())),
        socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    // An abstract socket name, as systemd sometimes uses: Bazel's directories are too long for a
    // socket's path.
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    auto process = platform::ChildProcess::Start({.arguments = std::move(command),
                                                  .environment = {{"NOTIFY_SOCKET", name_}},
                                                  .output_file = testing::TempDir() + "/log"});
    EXPECT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
  }
  ~ServiceManager() { close(socket_); }

  platform::ChildProcess& process() { return *process_; }

  // The next message.
  std::string Read() {
    pollfd waiter = {.fd = socket_, .events = POLLIN};
    const int deadline = static_cast<int>(absl::ToInt64Milliseconds(end_to_end::kDeadline));
    if (poll(&waiter, 1, deadline) != 1) return "nothing came";
    char buffer[1024];
    const ssize_t size = recv(socket_, buffer, sizeof(buffer), 0);
    return size < 0 ? "an error came" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  const std::string name_;
  const int socket_;
  std::unique_ptr<platform::ChildProcess> process_;
};

TEST(SystemdTest, ServerReportsReadinessAndStop) {
  ServiceManager manager({end_to_end::kServer, "--listen", "127.0.0.1:0", "--metrics_listen", "",
                          "--data_dir", testing::TempDir() + "/data"});
  EXPECT_THAT(manager.Read(), testing::StartsWith("READY=1\nSTATUS=serving on 127.0.0.1:"));
  manager.process().Signal(SIGTERM);
  EXPECT_EQ(manager.Read(), "STOPPING=1");
  EXPECT_TRUE(manager.process().WaitFor(end_to_end::kDeadline)->ok());
}

TEST(SystemdTest, WorkerIsReadyWithoutAServer) {
  ServiceManager manager({end_to_end::kWorker, "--server", "127.0.0.1:1", "--device", "cpu",
                          "--worker_id", "w", "--spool_dir", testing::TempDir() + "/spool"});
  EXPECT_EQ(manager.Read(), "READY=1\nSTATUS=w on cpu for 127.0.0.1:1");
  manager.process().Signal(SIGTERM);
  EXPECT_EQ(manager.Read(), "STOPPING=1");
  EXPECT_TRUE(manager.process().WaitFor(end_to_end::kDeadline)->ok());
}

TEST(DeploymentTest, DeploymentUsesExistingOptions) {
  const std::vector<std::string> server = OptionsOf("server/lengthwise_server");
  const std::vector<std::string> worker = OptionsOf("worker/lengthwise_worker");
  int options = 0;
  for (const char* file : {"deploy/systemd/lengthwise-server.service",
                           "deploy/systemd/lengthwise-worker@.service", "deploy/compose.yaml"}) {
    bool of_server = false;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(ReadText(file), '\n'))) {
      if (absl::StartsWith(line, "#")) continue;
      const bool names_server = absl::StrContains(line, "lengthwise_server");
      const bool names_worker = absl::StrContains(line, "lengthwise_worker");
      if (names_server || names_worker) of_server = names_server;
      // The arguments of the server's service continue on further lines.
      const bool listed = of_server && absl::StartsWith(line, "      - --");
      if (!names_server && !names_worker && !listed) continue;
      for (const std::string& option : Options(line)) {
        ++options;
        EXPECT_THAT(names_worker ? worker : server, testing::Contains(option))
            << file << ": " << line;
      }
    }
  }
  EXPECT_GE(options, 8);
  const std::string fleet = ReadText("deploy/systemd/lengthwise-fleet@.service");
  EXPECT_THAT(fleet, HasSubstr("/lengthwise workers up --slurm "));
  const std::string help = RunCommand({"client/lengthwise", "workers", "up", "--help"}).output;
  for (const char* option : {"--slurm", "--worker_token_file", "--max"}) {
    EXPECT_THAT(help, HasSubstr(option));
    EXPECT_THAT(fleet, HasSubstr(option));
  }
}

// A service has no access to the home directory, where install.sh puts LibTorch.
TEST(CollectTest, CollectedProgramsAreSelfContained) {
  const std::string directory = testing::TempDir() + "/collected";
  std::filesystem::remove_all(directory);
  const CommandResult collected = RunCommand({"deploy/collect.sh", directory, "."});
  ASSERT_TRUE(collected.ok) << collected.output;
  bool torch = false;
  for (const char* program : {"lengthwise_server", "lengthwise_worker", "lengthwise"}) {
    const CommandResult loaded =
        RunCommand({"/usr/bin/ldd", absl::StrCat(directory, "/usr/local/bin/", program)});
    ASSERT_TRUE(loaded.ok) << loaded.output;
    EXPECT_THAT(loaded.output, Not(HasSubstr("not found")));
    for (const absl::string_view line : absl::StrSplit(loaded.output, '\n')) {
      const size_t arrow = line.find("=> /");
      if (arrow == absl::string_view::npos) continue;
      const absl::string_view path = line.substr(arrow + 3);
      torch = torch || absl::StrContains(path, "/lib/lengthwise/libtorch_cpu.so");
      EXPECT_TRUE(absl::StartsWith(path, directory) || absl::StartsWith(path, "/lib/") ||
                  absl::StartsWith(path, "/usr/lib/"))
          << program << " loads " << path;
    }
  }
  EXPECT_TRUE(torch);
  const std::string libraries = directory + "/usr/local/lib/lengthwise";
  for (const auto& entry : std::filesystem::directory_iterator(libraries)) {
    const std::string name = entry.path().filename();
    EXPECT_FALSE(absl::StartsWith(name, "libssl") || absl::StartsWith(name, "libstdc++") ||
                 absl::StartsWith(name, "libgrpc"))
        << name << " is Debian's";
  }
  EXPECT_FALSE(std::filesystem::exists(directory + "/etc")) << "other programs would load them";
  EXPECT_THAT(ReadText(directory + "/usr/local/share/lengthwise/packages"), HasSubstr("libssl3"));
  std::filesystem::remove_all(directory);
}

TEST(ComposeTest, FileIsValid) {
  if (FindProgram("docker-compose").empty()) GTEST_SKIP() << "docker-compose is not installed";
  const CommandResult result =
      RunCommand({FindProgram("docker-compose"), "-f", "deploy/compose.yaml", "config", "--quiet"});
  EXPECT_TRUE(result.ok) << result.output;
}

// Every file that a container mounts from this tree must exist.
TEST(ComposeTest, MountedFilesExist) {
  int mounts = 0;
  for (const std::string& line :
       NamesBehind(ReadText("deploy/compose.yaml"), {"- ./", "dockerfile: "})) {
    const std::string path = line.substr(0, line.find(':'));
    ++mounts;
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat("deploy/", path)) ||
                std::filesystem::exists(path))
        << path;
  }
  EXPECT_EQ(mounts, 5);
}

TEST(GrafanaTest, ProvisioningMatchesTheContainers) {
  const std::string directory = "deploy/grafana/provisioning/";
  const YAML::Node source = YAML::LoadFile(directory + "datasources/prometheus.yml");
  EXPECT_EQ(source["apiVersion"].as<int>(), 1);
  EXPECT_EQ(source["datasources"][0]["type"].as<std::string>(), "prometheus");
  EXPECT_EQ(source["datasources"][0]["url"].as<std::string>(), "$PROMETHEUS_URL");
  // The windows of rates must fit the scrape interval.
  EXPECT_EQ(source["datasources"][0]["jsonData"]["timeInterval"].as<std::string>(),
            YAML::LoadFile("deploy/prometheus/prometheus.yml")["global"]["scrape_interval"]
                .as<std::string>());
  const YAML::Node provider = YAML::LoadFile(directory + "dashboards/lengthwise.yml");
  EXPECT_EQ(provider["apiVersion"].as<int>(), 1);
  EXPECT_EQ(provider["providers"][0]["type"].as<std::string>(), "file");
  EXPECT_EQ(provider["providers"][0]["options"]["path"].as<std::string>(),
            "$LENGTHWISE_DASHBOARDS");

  const YAML::Node services = YAML::LoadFile("deploy/compose.yaml")["services"];
  const YAML::Node environment = services["grafana"]["environment"];
  EXPECT_EQ(environment["PROMETHEUS_URL"].as<std::string>(), "http://prometheus:9090");
  ASSERT_TRUE(services["prometheus"].IsDefined());
  const auto mounts = services["grafana"]["volumes"].as<std::vector<std::string>>();
  const auto dashboards = environment["LENGTHWISE_DASHBOARDS"].as<std::string>();
  EXPECT_THAT(mounts, testing::Contains(absl::StrCat("./grafana/dashboards:", dashboards, ":ro")));
  EXPECT_THAT(mounts, testing::Contains("./grafana/provisioning:/etc/grafana/provisioning:ro"));
  EXPECT_EQ(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"].as<std::string>(),
            absl::StrCat(dashboards, "/overview.json"));
  // Prometheus must scrape the address on which the server listens.
  const YAML::Node targets = YAML::LoadFile("deploy/prometheus/targets.compose.yml");
  const auto target = targets[0]["targets"][0].as<std::string>();
  ASSERT_TRUE(services[target.substr(0, target.find(':'))].IsDefined()) << target;
  EXPECT_THAT(
      services["server"]["command"].as<std::vector<std::string>>(),
      testing::Contains(absl::StrCat("--metrics_listen=0.0.0.0", target.substr(target.find(':')))));
}

}  // namespace
}  // namespace lengthwise::monitoring_test
