#include "client/connection/private_service.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"
#include "rpc/settings.h"

namespace lengthwise::client {
namespace {

constexpr int kLogLines = 12;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the log's last lines below a line that names the log.
std::string LogExcerpt(const std::string& log) {
  const std::string tail = Tail(log, kLogLines);
  if (tail.empty()) return absl::StrCat("; its log ", log, " is empty");
  return absl::StrCat("; the end of its log ", log, ":\n", tail);
}

}  // namespace

std::string DefaultDataDirectory() {
  const auto data = platform::DataDirectory();
  return data.has_value() ? *data + "/runs" : "lengthwise-runs";
}

bool HoldsExperiments(const std::string& data_dir) {
  std::error_code error;
  return std::filesystem::exists(absl::StrCat(data_dir, "/", kDatabaseFile), error);
}

absl::StatusOr<std::string> FindProgram(const std::string& name, const std::string& folder,
                                        const std::string& variable) {
  if (const std::string given = Environment(variable.c_str()); !given.empty()) return given;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::vector<std::filesystem::path> candidates = {
      self.parent_path() / name, self.parent_path().parent_path() / folder / name};
  for (const auto& candidate : candidates) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return absl::NotFoundError(absl::StrCat("cannot find ", name, " (looked for ",
                                          candidates[0].string(), " and ", candidates[1].string(),
                                          "); build it with `bazel build //", folder, ":", name,
                                          "` or set ", variable, " to its path"));
}

std::string Tail(const std::string& path, int lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back("  " + line);
    if (static_cast<int>(last.size()) > lines) last.pop_front();
  }
  return absl::StrJoin(last, "\n");
}

absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Start(const Options& options) {
  ASSIGN_OR_RETURN(auto program,
                   FindProgram("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY"));
  std::unique_ptr<PrivateService> service(new PrivateService(options));
  std::error_code error;
  std::filesystem::create_directories(service->log_directory(), error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat("cannot create ", service->log_directory(),
                                                      " (", error.message(),
                                                      "); choose another with --data_dir"));
  }
  // Tried, and released at once, before Launch removes the log of the server that holds the lock.
  // Other errors are for the server to report.
  if (absl::IsAborted(platform::FileLock::Acquire(options.data_dir + "/LOCK").status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("a `lengthwise run` or a server is using ", options.data_dir,
                     "; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)"));
  }
  // Named after this process, so that two clients at the same directory do not read each other's
  // file.
  const std::string ready_file = absl::StrCat(options.data_dir, "/ready-", getpid());
  std::filesystem::remove(ready_file, error);
  RETURN_IF_ERROR(service->Launch(
      "server", {program, "--listen", "127.0.0.1:0", "--metrics_listen", "127.0.0.1:0",
                 "--data_dir", options.data_dir, "--ready_file", ready_file}));

  const absl::Time deadline = absl::Now() + options.start_timeout;
  while (service->address_.empty()) {
    std::ifstream ready(ready_file);
    if (std::string line; std::getline(ready, line) && !ready.eof()) service->address_ = line;
    if (!service->address_.empty()) break;
    if (service->children_[0].process->WaitFor(absl::Milliseconds(5)).has_value()) {
      return service->Check();
    }
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the private server was not ready after ",
                                                      absl::FormatDuration(options.start_timeout),
                                                      LogExcerpt(service->children_[0].log)));
    }
  }
  std::filesystem::remove(ready_file, error);
  return service;
}

PrivateService::~PrivateService() { Stop(absl::Seconds(5)); }

absl::Status PrivateService::Launch(const std::string& name, std::vector<std::string> arguments) {
  const std::string log = absl::StrCat(log_directory(), "/", name, ".log");
  // The log covers one run only.
  std::error_code error;
  std::filesystem::remove(log, error);
  ASSIGN_OR_RETURN(auto process,
                   platform::ChildProcess::Start({.arguments = std::move(arguments),
                                                  // All settings are passed as flags; the user's
                                                  // settings are for another server.
                                                  .environment = rpc::EmptySettingsEnvironment(),
                                                  .output_file = log}));
  children_.push_back({.name = name, .log = log, .process = std::move(process)});
  return absl::OkStatus();
}

absl::Status PrivateService::StartWorker(const std::string& device, int threads,
                                         const std::string& experiment) {
  ASSIGN_OR_RETURN(auto program,
                   FindProgram("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY"));
  return Launch(absl::StrCat("worker-", children_.size()),
                {program, "--server", address_, "--device", device, "--threads",
                 absl::StrCat(threads), "--experiment", experiment});
}

absl::Status PrivateService::Check() {
  for (Child& child : children_) {
    const auto exit = child.process->Poll();
    if (!exit.has_value()) continue;
    return absl::AbortedError(
        absl::StrCat("the private ", child.name, " ", exit->ToString(), LogExcerpt(child.log)));
  }
  return absl::OkStatus();
}

void PrivateService::Stop(absl::Duration grace) {
  // Signals all workers at once, and each only once: a second signal makes a worker exit without a
  // checkpoint.
  for (size_t i = 1; i < children_.size(); ++i) children_[i].process->Signal(SIGTERM);
  const absl::Time deadline = absl::Now() + grace;
  while (!children_.empty()) {
    platform::ChildProcess& process = *children_.back().process;
    if (children_.size() == 1) {
      // The server has a grace period of its own, because the workers' checkpoints must reach the
      // disk.
      process.Terminate(grace);
    } else if (!process.WaitFor(std::max(deadline - absl::Now(), absl::ZeroDuration()))) {
      process.Signal(SIGKILL);
      process.WaitFor(absl::InfiniteDuration());
    }
    children_.pop_back();
  }
}

}  // namespace lengthwise::client
