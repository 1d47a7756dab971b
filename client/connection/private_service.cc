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

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/connection/names.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"
#include "rpc/settings.h"

namespace lengthwise::client {
namespace {

constexpr int kLogLines = 12;
// Too little for a server to start.
constexpr int64_t kLittleDisk = int64_t{16} << 20;
constexpr size_t kLongestCommand = 80;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the log's last lines below a line that names the log. A log on a full disk is empty.
std::string LogExcerpt(const std::string& log) {
  const std::string tail = Tail(log, kLogLines);
  if (!tail.empty()) return absl::StrCat("; the end of its log ", log, ":\n", tail);
  std::error_code error;
  if (!std::filesystem::exists(log, error)) return absl::StrCat("; its log ", log, " is gone");
  const std::string empty = absl::StrCat("; its log ", log, " is empty");
  const auto space = platform::GetDiskSpace(platform::DirectoryOf(log));
  if (!space.ok()) return empty;
  return absl::StrCat(empty, ", and ", space->free_bytes, " bytes are free on its file system",
                      space->free_bytes < kLittleDisk ? "; free some space" : "");
}

std::string LockOf(const std::string& data_dir) {
  return absl::StrCat(data_dir, "/", platform::kLockFile);
}

// Returns a process's program and arguments; empty if they are unknown.
std::string CommandOf(pid_t process) {
  const auto text = platform::ReadFile(absl::StrCat("/proc/", process, "/cmdline"));
  if (!text.ok()) return "";
  std::vector<std::string> words = absl::StrSplit(*text, '\0', absl::SkipEmpty());
  if (words.empty()) return "";
  words[0] = std::filesystem::path(words[0]).filename().string();
  const std::string command = platform::PrintableLine(absl::StrJoin(words, " "));
  if (command.size() <= kLongestCommand) return command;
  return absl::StrCat(platform::Utf8Prefix(command, kLongestCommand), "...");
}

// Returns 0 if it is unknown.
pid_t ParentOf(pid_t process) {
  // "12 (lengthwise_server) S 11 ...". The name may contain anything.
  const auto text = platform::ReadFile(absl::StrCat("/proc/", process, "/stat"));
  if (!text.ok() || !absl::StrContains(*text, ") ")) return 0;
  const std::vector<std::string> fields =
      absl::StrSplit(text->substr(text->rfind(") ") + 2), absl::MaxSplits(' ', 2));
  pid_t parent = 0;
  return fields.size() == 3 && absl::SimpleAtoi(fields[1], &parent) ? parent : 0;
}

std::string NameOfServer(pid_t process) {
  const std::string name = absl::StrCat("lengthwise_server (process ", process, ")");
  // A service manager says nothing about the server.
  const pid_t parent = ParentOf(process);
  const std::string command = parent > 1 ? CommandOf(parent) : "";
  if (command.empty()) return name;
  return absl::StrCat(name, ", started by `", command, "` (process ", parent, ")");
}

absl::Status DirectoryInUse(const std::string& holder, const std::string& data_dir) {
  return absl::FailedPreconditionError(
      absl::StrCat(holder, " is using ", data_dir,
                   "; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)"));
}

}  // namespace

std::string DefaultDataDirectory() {
  const auto data = platform::DataDirectory();
  return data.has_value() ? *data + "/runs" : "lengthwise-runs";
}

bool HoldsExperiments(const std::string& data_dir) {
  std::error_code error;
  return std::filesystem::exists(absl::StrCat(data_dir, "/", platform::kDatabaseFile), error);
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

absl::Status RunningServer::Check() const {
  const auto holder = platform::FileLock::ReadHolder(LockOf(data_dir));
  if (holder.has_value() && holder->process == process && !holder->text.empty()) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the server that this command asked has ended: ", name, "; repeat the command"));
}

absl::Status RunningServer::InUse() const {
  if (needs_credentials) {
    return absl::FailedPreconditionError(absl::StrCat(name, " is using ", data_dir,
                                                      "; ask it with --server ", address,
                                                      " and your token instead of --data_dir"));
  }
  const absl::Status status = DirectoryInUse(name, data_dir);
  return absl::FailedPreconditionError(
      absl::StrCat(status.message(), "; `lengthwise list --data_dir ",
                   platform::ShellWord(data_dir), "` shows its experiments meanwhile"));
}

absl::StatusOr<std::optional<RunningServer>> FindRunningServer(const std::string& data_dir,
                                                               absl::Duration patience) {
  if (platform::IsBackup(data_dir)) {
    return absl::FailedPreconditionError(
        absl::StrCat(data_dir, " is a backup; restore it first: `lengthwise_server --restore ",
                     platform::ShellWord(data_dir), " --data_dir NEW`"));
  }
  const std::string lock = LockOf(data_dir);
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    // Tried, and released at once.
    const absl::Status locked = platform::FileLock::Acquire(lock).status();
    if (absl::IsPermissionDenied(locked) || absl::IsFailedPrecondition(locked)) {
      return absl::FailedPreconditionError(
          absl::StrCat(locked.message(),
                       "; copy the directory to a place where you may write, or ask its owner for "
                       "a `lengthwise report`"));
    }
    // Other errors are for the server to report.
    if (!absl::IsAborted(locked)) return std::nullopt;
    const auto holder = platform::FileLock::ReadHolder(lock);
    if (holder.has_value() && !holder->text.empty()) {
      const std::vector<std::string> lines = absl::StrSplit(holder->text, '\n');
      return RunningServer{.data_dir = data_dir,
                           .process = holder->process,
                           .address = lines[0],
                           .needs_credentials = lines.size() > 1 && !lines[1].empty(),
                           .name = NameOfServer(holder->process)};
    }
    if (absl::Now() > deadline) {
      return DirectoryInUse(
          holder.has_value() ? NameOfServer(holder->process) : "a `lengthwise run` or a server",
          data_dir);
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Start(const Options& options) {
  ASSIGN_OR_RETURN(auto program,
                   FindProgram("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY"));
  // Before Launch removes the log of a server that holds the directory.
  ASSIGN_OR_RETURN(const std::optional<RunningServer> running,
                   FindRunningServer(options.data_dir, options.patience));
  if (running.has_value()) return running->InUse();
  std::unique_ptr<PrivateService> service(new PrivateService(options));
  std::error_code error;
  std::filesystem::create_directories(service->log_directory(), error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat("cannot create ", service->log_directory(),
                                                      " (", error.message(),
                                                      "); choose another with --data_dir"));
  }
  // Named after this process, so that two clients at the same directory do not read each other's
  // file.
  const std::string ready_file = absl::StrCat(options.data_dir, "/ready-", getpid());
  std::filesystem::remove(ready_file, error);
  std::vector<std::string> arguments = {
      program,      "--listen",       "127.0.0.1:0",  "--metrics_listen", "127.0.0.1:0",
      "--data_dir", options.data_dir, "--ready_file", ready_file};
  // Workers end with the process that started them, so none of an earlier run is left.
  if (options.release_leases) arguments.push_back("--release_leases");
  RETURN_IF_ERROR(service->Launch("server", std::move(arguments)));

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
                 absl::StrCat(threads), "--experiment", experiment, "--server_data_dir",
                 // The server's copy of the experiment's examples.
                 absl::StrCat(options_.data_dir, "/", platform::kArtifactsDirectory, "/",
                              ShortName(experiment), "/data")});
}

absl::Status PrivateService::Check() {
  if (!ended_.ok()) return ended_;
  const size_t workers = children_.size() - std::min<size_t>(children_.size(), 1);
  size_t running = 0;
  for (size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    const auto exit = child.process->Poll();
    if (!exit.has_value()) {
      if (i > 0) ++running;
      continue;
    }
    if (std::exchange(child.lost, true)) continue;
    const bool killed = exit->signal == SIGKILL;
    const std::string message = absl::StrCat(
        "the private ", child.name, " ", exit->ToString(),
        killed ? ", often because memory ran out" : "",
        killed && workers > 1 ? " (--workers 1 needs less)" : "", LogExcerpt(child.log));
    if (i == 0) return ended_ = absl::AbortedError(message);
    lost_workers_.push_back(message);
  }
  if (workers == 0 || running > 0) return absl::OkStatus();
  // All have ended, so at least the last one was added here.
  ended_ = absl::AbortedError(lost_workers_.back());
  lost_workers_.pop_back();
  return ended_;
}

void PrivateService::StopWorkers(absl::Duration grace) {
  // Signals all workers at once, and each only once: a second signal makes a worker exit without a
  // checkpoint.
  for (size_t i = 1; i < children_.size(); ++i) children_[i].process->Signal(SIGTERM);
  const absl::Time deadline = absl::Now() + grace;
  while (children_.size() > 1) {
    platform::ChildProcess& process = *children_.back().process;
    if (!process.WaitFor(std::max(deadline - absl::Now(), absl::ZeroDuration()))) {
      process.Signal(SIGKILL);
      process.WaitFor(absl::InfiniteDuration());
    }
    children_.pop_back();
  }
}

void PrivateService::Stop(absl::Duration grace) {
  StopWorkers(grace);
  if (children_.empty()) return;
  // The server has a grace period of its own, because the workers' checkpoints must reach the disk.
  children_.back().process->Terminate(grace);
  children_.pop_back();
}

}  // namespace lengthwise::client
