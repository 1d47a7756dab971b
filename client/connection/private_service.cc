#include "client/connection/private_service.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
#include "client/connection/connection.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"
#include "rpc/address.h"
#include "rpc/settings.h"

namespace lengthwise::client {
namespace {

constexpr int kLogLines = 12;
// Too little for a server to start.
constexpr int64_t kLittleDisk = int64_t{16} << 20;
constexpr size_t kLongestCommand = 80;
// Held by a client that looks for a server, until it has found or started one.
constexpr char kStartingFile[] = "STARTING";

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

// `why` says, if it is known, why it cannot be asked.
absl::Status DirectoryInUse(const std::string& holder, const std::string& data_dir,
                            absl::string_view why = "") {
  return absl::FailedPreconditionError(
      absl::StrCat(holder, " is using ", data_dir, why,
                   "; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)"));
}

std::string NameOfHolder(const std::optional<platform::FileLock::Holder>& holder) {
  if (holder.has_value() && holder->process > 0) return NameOfServer(holder->process);
  const bool is_elsewhere = holder.has_value() && !holder->host.empty();
  return absl::StrCat(
      "a `lengthwise run` or a server",
      is_elsewhere ? absl::StrCat(" on ", holder->host, " (another machine or container)") : "");
}

// Makes the address usable here: a server in a mount namespace of its own, such as a job with a
// private /tmp, has its socket below /proc. FAILED_PRECONDITION if there is no socket.
absl::Status FindSocket(RunningServer& server) {
  const std::string path(rpc::SocketOf(server.address));
  if (path.empty()) return absl::OkStatus();
  const std::string there = absl::StrCat("/proc/", server.process, "/root", path);
  struct stat own, found;
  const bool is_there = stat(there.c_str(), &own) == 0;
  // A killed server may have left another one here.
  const bool is_here = stat(path.c_str(), &found) == 0;
  if (is_here && (!is_there || (own.st_dev == found.st_dev && own.st_ino == found.st_ino))) {
    return absl::OkStatus();
  }
  if (is_there && there.size() < sizeof(sockaddr_un::sun_path)) {
    server.address = absl::StrCat("unix:", there);
    return absl::OkStatus();
  }
  return DirectoryInUse(
      server.name, server.data_dir,
      absl::StrCat(", but its socket ", path,
                   " is gone, for example because the temporary directory was cleaned, or belongs "
                   "to another user"));
}

// Returns the server that says in LOCK where it serves; nullopt if none does.
std::optional<RunningServer> Described(const std::string& data_dir) {
  const auto holder = platform::FileLock::ReadHolder(LockOf(data_dir));
  if (!holder.has_value() || holder->process == 0 || holder->text.empty()) return std::nullopt;
  const std::vector<std::string> lines = absl::StrSplit(holder->text, '\n');
  return RunningServer{.data_dir = data_dir,
                       .process = holder->process,
                       .address = lines[0],
                       .needs_credentials = lines.size() > 1 && !lines[1].empty(),
                       .name = NameOfServer(holder->process)};
}

// FAILED_PRECONDITION with advice if `locked` says that the user may not write in a directory.
absl::Status MayWrite(const absl::Status& locked) {
  if (!absl::IsPermissionDenied(locked) && !absl::IsFailedPrecondition(locked)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(locked.message(),
                   "; copy the directory to a place where you may write, or ask its owner for a "
                   "`lengthwise report`"));
}

// Waits until a lock can be had. FAILED_PRECONDITION at the deadline.
absl::StatusOr<std::unique_ptr<platform::FileLock>> WaitForLock(
    absl::StatusOr<std::unique_ptr<platform::FileLock>> (*lock)(const std::string& path),
    const std::string& data_dir, absl::string_view name, absl::Time deadline) {
  while (true) {
    auto locked = lock(absl::StrCat(data_dir, "/", name));
    RETURN_IF_ERROR(MayWrite(locked.status()));
    if (!absl::IsAborted(locked.status())) return locked;
    if (absl::Now() > deadline) return DirectoryInUse("another `lengthwise`", data_dir);
    absl::SleepFor(absl::Milliseconds(5));
  }
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
  const char* given = std::getenv(variable.c_str());
  if (given != nullptr && *given != '\0') return given;
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

absl::StatusOr<std::optional<RunningServer>> FindRunningServer(const std::string& data_dir,
                                                               absl::Duration patience) {
  const std::string lock = LockOf(data_dir);
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    // Tried, and released at once.
    const absl::Status locked = platform::FileLock::Acquire(lock).status();
    RETURN_IF_ERROR(MayWrite(locked));
    // Other errors are for the server to report.
    if (!absl::IsAborted(locked)) return std::nullopt;
    if (auto server = Described(data_dir); server.has_value()) {
      RETURN_IF_ERROR(FindSocket(*server));
      return server;
    }
    if (absl::Now() > deadline) {
      return DirectoryInUse(NameOfHolder(platform::FileLock::ReadHolder(lock)), data_dir);
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Open(const Options& options) {
  const std::string& data_dir = options.data_dir;
  if (platform::IsBackup(data_dir)) {
    return absl::FailedPreconditionError(
        absl::StrCat(data_dir, " is a backup; restore it first: `lengthwise_server --restore ",
                     platform::ShellWord(data_dir), " --data_dir NEW`"));
  }
  std::unique_ptr<PrivateService> service(new PrivateService(options));
  std::error_code error;
  std::filesystem::create_directories(service->log_directory(), error);
  if (error) {
    RETURN_IF_ERROR(MayWrite(platform::FileLock::Share(LockOf(data_dir)).status()));
    return absl::FailedPreconditionError(absl::StrCat("cannot create ", service->log_directory(),
                                                      " (", error.message(),
                                                      "); choose another with --data_dir"));
  }
  const absl::Time deadline = absl::Now() + options.start_timeout;
  // From here on a server that is found does not end by itself.
  ASSIGN_OR_RETURN(service->users_, WaitForLock(platform::FileLock::Share, data_dir,
                                                platform::kUsersFile, deadline));
  // Of those that find none, one starts a server at a time.
  ASSIGN_OR_RETURN(const auto starting,
                   WaitForLock(platform::FileLock::Acquire, data_dir, kStartingFile, deadline));
  ASSIGN_OR_RETURN(service->joined_, FindRunningServer(data_dir, options.patience));
  if (const auto& running = service->joined_; running.has_value()) {
    if (running->needs_credentials) {
      return absl::FailedPreconditionError(absl::StrCat(running->name, " is using ", data_dir,
                                                        "; ask it with --server ", running->address,
                                                        " and your token instead of --data_dir"));
    }
    service->address_ = running->address;
    return service;
  }
  RETURN_IF_ERROR(service->StartServer());
  return service;
}

absl::Status PrivateService::StartServer() {
  ASSIGN_OR_RETURN(auto program,
                   FindProgram("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY"));
  std::error_code error;
  // Logs of workers that had joined an earlier server (StartWorker). Nobody writes them any more.
  for (const auto& entry : std::filesystem::directory_iterator(log_directory(), error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "worker-") && std::count(name.begin(), name.end(), '-') == 2) {
      std::filesystem::remove(entry.path(), error);
    }
  }
  std::vector<std::string> arguments = {program, "--data_dir", options_.data_dir, "--private",
                                        "--allow_python_networks"};
  // Workers end with the program that started them, so none of an earlier run is left.
  if (options_.release_leases) arguments.push_back("--release_leases");
  ASSIGN_OR_RETURN(platform::Pipe pipe, platform::Pipe::Open());
  pipe_ = std::move(pipe.write_end);
  ASSIGN_OR_RETURN(server_, Launch("server", std::move(arguments), pipe.read_end.get()));
  for (const absl::Time deadline = absl::Now() + options_.start_timeout;;) {
    // FindRunningServer has emptied LOCK of what an earlier server said.
    if (const auto server = Described(options_.data_dir); server.has_value()) {
      address_ = server->address;
      return absl::OkStatus();
    }
    if (server_->process->WaitFor(absl::Milliseconds(5)).has_value()) return Check();
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the private server was not ready after ",
                                                      absl::FormatDuration(options_.start_timeout),
                                                      LogExcerpt(server_->log)));
    }
  }
}

PrivateService::~PrivateService() { Stop(absl::Seconds(5)); }

absl::StatusOr<PrivateService::Child> PrivateService::Launch(const std::string& name,
                                                             std::vector<std::string> arguments,
                                                             int input) {
  const std::string log = absl::StrCat(log_directory(), "/", name, ".log");
  // The log covers one process only.
  std::error_code error;
  std::filesystem::remove(log, error);
  ASSIGN_OR_RETURN(auto process,
                   platform::ChildProcess::Start({.arguments = std::move(arguments),
                                                  // All settings are passed as flags; the user's
                                                  // settings are for another server.
                                                  .environment = rpc::EmptySettingsEnvironment(),
                                                  .input_descriptor = input,
                                                  .output_file = log,
                                                  // The server ends with its pipe.
                                                  .parent_death_signal = input < 0 ? SIGKILL : 0}));
  return Child{.name = name, .log = log, .process = std::move(process)};
}

absl::Status PrivateService::StartWorker(const std::string& device, int threads,
                                         const std::string& experiment) {
  ASSIGN_OR_RETURN(auto program,
                   FindProgram("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY"));
  // Not the name of a worker of the program whose server was joined.
  const std::string name = absl::StrCat(
      "worker-", joined_.has_value() ? absl::StrCat(getpid(), "-") : "", ++started_workers_);
  ASSIGN_OR_RETURN(
      Child worker,
      Launch(name, {program, "--server", address_, "--device", device, "--threads",
                    absl::StrCat(threads), "--experiment", experiment, "--server_data_dir",
                    // The server's copy of the experiment's examples.
                    absl::StrCat(options_.data_dir, "/", platform::kArtifactsDirectory, "/",
                                 ShortName(experiment), "/data"),
                    "--allow_python_networks"}));
  workers_.push_back(std::move(worker));
  return absl::OkStatus();
}

std::string PrivateService::HowItEnded(const Child& child,
                                       const platform::ChildProcess::Exit& exit) const {
  const bool killed = exit.signal == SIGKILL;
  return absl::StrCat("the private ", child.name, " ", exit.ToString(),
                      killed ? ", often because memory ran out" : "",
                      killed && workers_.size() > 1 ? " (--workers 1 needs less)" : "",
                      LogExcerpt(child.log));
}

absl::Status PrivateService::Check() {
  if (!ended_.ok()) return ended_;
  if (joined_.has_value()) ended_ = joined_->Check();
  if (server_.has_value()) {
    if (const auto exit = server_->process->Poll(); exit.has_value()) {
      ended_ = absl::AbortedError(HowItEnded(*server_, *exit));
    }
  }
  if (!ended_.ok()) return ended_;
  size_t running = 0;
  for (Child& worker : workers_) {
    const auto exit = worker.process->Poll();
    if (!exit.has_value()) ++running;
    if (!exit.has_value() || std::exchange(worker.lost, true)) continue;
    lost_workers_.push_back(HowItEnded(worker, *exit));
  }
  if (workers_.empty() || running > 0) return absl::OkStatus();
  // All have ended, so at least the last one was added here.
  ended_ = absl::AbortedError(lost_workers_.back());
  lost_workers_.pop_back();
  return ended_;
}

void PrivateService::StopWorkers(absl::Duration grace) {
  // Signals all workers at once, and each only once: a second signal makes a worker exit without a
  // checkpoint.
  for (const Child& worker : workers_) worker.process->Signal(SIGTERM);
  const absl::Time deadline = absl::Now() + grace;
  for (; !workers_.empty(); workers_.pop_back()) {
    platform::ChildProcess& process = *workers_.back().process;
    if (!process.WaitFor(std::max(deadline - absl::Now(), absl::ZeroDuration()))) {
      process.Signal(SIGKILL);
      process.WaitFor(absl::InfiniteDuration());
    }
  }
}

void PrivateService::Stop(absl::Duration grace) {
  StopWorkers(grace);
  if (server_.has_value()) {
    if (users_->TakeAlone()) {
      // The server has a grace period of its own, because the workers' checkpoints must reach the
      // disk.
      server_->process->Terminate(grace);
    } else if (const char stay = 1;
               !server_->process->Poll().has_value() && write(pipe_.get(), &stay, 1) == 1) {
      server_->process->Detach();
    }
  }
  pipe_ = platform::Descriptor();
  server_.reset();
  users_.reset();
}

}  // namespace lengthwise::client
