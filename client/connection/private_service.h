// The one way to the server of a data directory: asks the one that runs there, or starts a private
// one as a child process of the client. Starts workers for it.
#ifndef LENGTHWISE_CLIENT_CONNECTION_PRIVATE_SERVICE_H_
#define LENGTHWISE_CLIENT_CONNECTION_PRIVATE_SERVICE_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/child_process.h"
#include "platform/files.h"

namespace lengthwise::client {

// Default data directory of `lengthwise run`: $XDG_DATA_HOME/lengthwise/runs, or
// ~/.local/share/lengthwise/runs.
std::string DefaultDataDirectory();

// Returns true if a server has used the directory as its data directory.
bool HoldsExperiments(const std::string& data_dir);

// Returns the path of another program of the product: the value of the environment variable
// `variable` if it is set, else the file beside this program or in ../`folder`, as in Bazel's
// output. NOT_FOUND names the places searched.
absl::StatusOr<std::string> FindProgram(const std::string& name, const std::string& folder,
                                        const std::string& variable);

// Returns the last `lines` lines of a file; empty if there is no file.
std::string Tail(const std::string& path, int lines);

// A server that another process runs on a data directory, usually a `lengthwise run`.
struct RunningServer {
  std::string data_dir;
  pid_t process = 0;
  // "unix:PATH" of a private server, "HOST:PORT" of others.
  std::string address;
  // The server has tokens or TLS, so its address is not enough.
  bool needs_credentials = false;
  // "lengthwise_server (process 12), started by `lengthwise run a.yaml` (process 11)".
  std::string name;

  // UNAVAILABLE if the server is stopping or has ended. Cheap enough for a call at every tick.
  absl::Status Check() const;
};

// Returns the server that holds a data directory, or nullopt if none does. Waits up to `patience`
// for one that is starting or stopping. FAILED_PRECONDITION if the holder does not say its address
// by then, is one of another machine, which the message names, or has a socket that cannot be
// opened here; or if this user may not write in the directory. Call it while no other client starts
// a server there.
absl::StatusOr<std::optional<RunningServer>> FindRunningServer(
    const std::string& data_dir, absl::Duration patience = absl::Seconds(5));

// For one thread, which must live as long as the service (see ChildProcess).
//
// Every program that uses the directory's server shares a lock on the file USERS there. A private
// server ends with its program, or, if others share the lock by then, after the last of them. It
// then holds the lock alone, so that newcomers wait until it has ended and start one anew.
class PrivateService {
 public:
  struct Options {
    // Created if missing. Logs go to its folder logs/.
    std::string data_dir;
    // A server that is started requeues at once the trials of an earlier run that was killed,
    // instead of after 30 s. For commands that train.
    bool release_leases = false;
    // Time for a server to become ready, or to end.
    absl::Duration start_timeout = absl::Seconds(30);
    // Time for another program's server to say its address.
    absl::Duration patience = absl::Seconds(5);
  };

  // Joins the server that uses the directory, or starts one on a Unix socket of this user and waits
  // until it serves. Errors are those of FindRunningServer; FAILED_PRECONDITION if that server
  // needs credentials, if there is none in time, or if the directory is a backup. Errors of a
  // started server include the last lines of its log.
  static absl::StatusOr<std::unique_ptr<PrivateService>> Open(const Options& options);

  // Stops workers and, if nobody else uses it, a server that was started.
  ~PrivateService();

  // The server if it was there already; nullopt if it was started.
  const std::optional<RunningServer>& joined() const { return joined_; }
  const std::string& address() const { return address_; }
  const std::string& data_dir() const { return options_.data_dir; }
  std::string log_directory() const { return options_.data_dir + "/logs"; }

  // Starts a worker dedicated to one experiment (full name) on `device` ("cpu", "cuda:N", "auto")
  // with `threads` threads for CPU kernels. Does not wait for its registration.
  absl::Status StartWorker(const std::string& device, int threads, const std::string& experiment);

  // Returns an error if the server or the last worker has ended, which none does by itself. The
  // message names the process, its exit and the last lines of its log, if it was started here.
  absl::Status Check();
  // Returns such a message for each worker that, as Check found, ended while another one runs.
  std::vector<std::string> TakeLostWorkers() { return std::exchange(lost_workers_, {}); }

  // Lets the workers write checkpoints and return their leases. A process that takes longer than
  // `grace` is killed.
  void StopWorkers(absl::Duration grace);
  // Stops the workers, then the server as the destructor does, each with its own `grace`.
  void Stop(absl::Duration grace);

 private:
  struct Child {
    std::string name;
    std::string log;
    std::unique_ptr<platform::ChildProcess> process;
    // Check has told of its end.
    bool lost = false;
  };

  explicit PrivateService(Options options) : options_(std::move(options)) {}

  absl::Status StartServer();
  // "the private worker-1 exited with code 3; the end of its log ...".
  std::string HowItEnded(const Child& child, const platform::ChildProcess::Exit& exit) const;
  absl::StatusOr<Child> Launch(const std::string& name, std::vector<std::string> arguments,
                               int input = -1);

  const Options options_;
  std::string address_;
  std::unique_ptr<platform::FileLock> users_;
  std::optional<RunningServer> joined_;
  // Of a server that was started; the descriptor is the pipe to it.
  std::optional<Child> server_;
  platform::Descriptor pipe_;
  std::vector<Child> workers_;
  int started_workers_ = 0;
  std::vector<std::string> lost_workers_;
  // The error of Check, once there is one.
  absl::Status ended_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_PRIVATE_SERVICE_H_
