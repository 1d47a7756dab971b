#include "tests/fleet/slurm_cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::fleet {
namespace {

constexpr char kScript[] = "tests/fleet/slurm_cluster.sh";
// The folder of the unpacked packages.
constexpr char kUnpacked[] = "/unpacked";
// Long, for a busy machine.
constexpr absl::Duration kStartTimeout = absl::Minutes(5);

// Three free ports.
std::array<int, 3> FreePorts() {
  std::array<int, 3> ports = {};
  std::array<int, 3> sockets = {};
  for (size_t i = 0; i < ports.size(); ++i) {
    sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(sockets[i], reinterpret_cast<sockaddr*>(&address), size);
    getsockname(sockets[i], reinterpret_cast<sockaddr*>(&address), &size);
    ports[i] = ntohs(address.sin_port);
  }
  for (const int socket : sockets) close(socket);
  return ports;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmCluster>> SlurmCluster::Start() {
  std::unique_ptr<SlurmCluster> cluster(new SlurmCluster);
  std::string directory = "/tmp/lengthwise_slurm_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return absl::InternalError("mkdtemp failed");
  cluster->directory_ = directory;
  const std::string root = directory + kUnpacked;
  const end_to_end::Result unpacked =
      end_to_end::RunProgram({kScript, "unpack", root}, directory + "/unpack.log");
  if (unpacked.code != 0) {
    return absl::UnavailableError(absl::StripAsciiWhitespace(unpacked.output));
  }
  const std::string run = directory + "/run";
  std::string libraries;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/usr/lib")) {
    if (!std::filesystem::exists(entry.path() / "slurm-wlm")) continue;
    libraries = absl::StrCat(entry.path().string(), ":", entry.path().string(), "/slurm-wlm");
  }
  const char* path = std::getenv("PATH");
  cluster->environment_ = {
      {"SLURM_CONF", run + "/slurm.conf"},
      {"LD_LIBRARY_PATH", libraries},
      {"PATH", absl::StrCat(root, "/usr/bin:", root, "/usr/sbin:", path == nullptr ? "" : path)}};
  absl::Status launched;
  std::string logs;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::array<int, 3> ports = FreePorts();
    const end_to_end::Result configured =
        end_to_end::RunProgram({kScript, "configure", root, run, absl::StrCat(ports[0]),
                                absl::StrCat(ports[1]), absl::StrCat(ports[2])},
                               directory + "/configure.log");
    if (configured.code != 0) return absl::InternalError(configured.output);
    launched = cluster->Launch();
    if (launched.ok()) return cluster;
    logs = cluster->Logs();
    std::cout << logs;
    cluster->StopDaemons();
    // Another program may take a port before a daemon does.
    if (!absl::StrContains(logs, "already in use")) break;
    std::filesystem::remove_all(run);
  }
  const std::string why = absl::StrCat("Debian's Slurm did not start: ", launched.message());
  // Not every container lets slurmd create control groups: it then logs an "error" or "fatal" line
  // and ends. Anything else is a failure of this test.
  for (const absl::string_view line : absl::StrSplit(logs, '\n')) {
    if ((absl::StrContains(line, "fatal") || absl::StrContains(line, "error")) &&
        absl::StrContains(line, "cgroup")) {
      return absl::UnavailableError(absl::StrCat(why, ": ", line));
    }
  }
  return absl::InternalError(why);
}

absl::Status SlurmCluster::Await(const std::string& what,
                                 const std::function<bool()>& condition) const {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (!condition()) {
    for (const auto& daemon : daemons_) {
      if (const auto exit = daemon->Poll(); exit.has_value()) {
        return absl::InternalError(absl::StrCat("a daemon ended: ", exit->ToString()));
      }
    }
    if (absl::Now() > deadline) return absl::DeadlineExceededError(what);
    absl::SleepFor(absl::Milliseconds(50));
  }
  return absl::OkStatus();
}

absl::Status SlurmCluster::Launch() {
  const std::string root = directory_ + kUnpacked;
  const std::string run = directory_ + "/run";
  const auto start = [&](std::vector<std::string> arguments, const std::string& log) {
    auto daemon = platform::ChildProcess::Start({.arguments = std::move(arguments),
                                                 .environment = environment_,
                                                 .output_file = absl::StrCat(run, "/", log)});
    if (daemon.ok()) daemons_.push_back(*std::move(daemon));
    return daemon.status();
  };
  const std::string munge = run + "/munge";
  absl::Status status =
      start({root + "/usr/sbin/munged", "--foreground", "--force", "--key-file=" + munge + "/key",
             "--socket=" + run + "/socket/munge", "--pid-file=" + munge + "/pid",
             "--seed-file=" + munge + "/seed", "--log-file=" + munge + "/log"},
            "munged.err");
  if (!status.ok()) return status;
  status = Await("munged is not listening",
                 [&] { return std::filesystem::exists(run + "/socket/munge"); });
  if (!status.ok()) return status;
  status = start({root + "/usr/sbin/slurmctld-wlm", "-D", "-c"}, "slurmctld.err");
  if (!status.ok()) return status;
  for (const std::string node : {"n1", "n2"}) {
    status = start(
        {root + "/usr/sbin/slurmd-wlm", "-D", "-N", node, "-d", root + "/usr/sbin/slurmstepd-wlm"},
        absl::StrCat("slurmd.", node, ".err"));
    if (!status.ok()) return status;
  }
  return Await("fewer than two nodes are idle", [&] {
    const end_to_end::Result idle = end_to_end::RunProgram(
        {root + "/usr/bin/sinfo", "-h", "-o", "%D", "-t", "idle", "-p", "gpu"}, run + "/sinfo.log",
        environment_);
    return idle.code == 0 && absl::StripAsciiWhitespace(idle.output) == "2";
  });
}

void SlurmCluster::StopDaemons() {
  while (!daemons_.empty()) {
    daemons_.back()->Terminate(absl::Seconds(10));
    daemons_.pop_back();
  }
}

SlurmCluster::~SlurmCluster() {
  if (daemons_.size() == 4) {
    Run({"scancel", "--me"});
    // The step managers are not children of this process. They end with their jobs.
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (Run({"squeue", "--noheader"}).find_first_not_of(" \n") != std::string::npos &&
           absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(100));
    }
  }
  StopDaemons();
  for (const auto& [name, value] : environment_) {
    if (name != "SLURM_CONF") continue;
    for (const std::string& left : end_to_end::ProcessesWithVariable(name, value)) {
      ADD_FAILURE() << "a process is left over: " << left;
    }
  }
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

std::string SlurmCluster::Run(std::vector<std::string> command) const {
  command[0] = absl::StrCat(directory_, kUnpacked, "/usr/bin/", command[0]);
  const end_to_end::Result result =
      end_to_end::RunProgram(std::move(command), directory_ + "/command.log", environment_);
  EXPECT_EQ(result.code, 0) << result.output;
  return result.output;
}

std::string SlurmCluster::JobsLeft(const std::string& name) const {
  return Run({"squeue", "--me", "--name", name, "--noheader", "--format=%i %T"});
}

std::string SlurmCluster::Logs() const {
  std::string logs;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_ + "/run", error)) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".log") && !name.ends_with(".err")) continue;
    absl::StrAppend(&logs, "== ", name, "\n", ReadFile(file.path()));
  }
  return logs;
}

}  // namespace lengthwise::fleet
