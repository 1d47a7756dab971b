// Runs a private server and workers as child processes of the client.
#ifndef LENGTHWISE_CLIENT_CONNECTION_PRIVATE_SERVICE_H_
#define LENGTHWISE_CLIENT_CONNECTION_PRIVATE_SERVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/child_process.h"

namespace lengthwise::client {

// Default data directory of `lengthwise run`: $XDG_DATA_HOME/lengthwise/runs, or
// ~/.local/share/lengthwise/runs.
std::string DefaultDataDirectory();

// The server's database in a data directory.
inline constexpr char kDatabaseFile[] = "lengthwise.db";

// Returns true if a server has used the directory as its data directory.
bool HoldsExperiments(const std::string& data_dir);

// Returns the path of another program of the product: the value of the environment variable
// `variable` if it is set, else the file beside this program or in ../`folder`, as in Bazel's
// output. NOT_FOUND names the places searched.
absl::StatusOr<std::string> FindProgram(const std::string& name, const std::string& folder,
                                        const std::string& variable);

// Returns the last `lines` lines of a file; empty if there is no file.
std::string Tail(const std::string& path, int lines);

// For one thread, which must live as long as the service (see ChildProcess).
class PrivateService {
 public:
  struct Options {
    // Created if missing. Logs go to its folder logs/.
    std::string data_dir;
    // Time for the server to become ready.
    absl::Duration start_timeout = absl::Seconds(30);
  };

  // Starts a server on a free loopback port and waits until it serves. FAILED_PRECONDITION if
  // another server has the directory open, whose log then stays. Errors of the server include the
  // last lines of its log.
  static absl::StatusOr<std::unique_ptr<PrivateService>> Start(const Options& options);

  // Stops workers and server.
  ~PrivateService();

  const std::string& address() const { return address_; }
  const std::string& data_dir() const { return options_.data_dir; }
  std::string log_directory() const { return options_.data_dir + "/logs"; }

  // Starts a worker dedicated to one experiment (full name) on `device` ("cpu", "cuda:N", "auto")
  // with `threads` threads for CPU kernels. Does not wait for its registration.
  absl::Status StartWorker(const std::string& device, int threads, const std::string& experiment);

  // Returns an error if one of the processes has ended, which none does by itself. The message
  // names the process, its exit and the last lines of its log.
  absl::Status Check();

  // Lets the workers write checkpoints and return their leases, then stops the server. A process
  // that takes longer than its `grace` is killed.
  void Stop(absl::Duration grace);

 private:
  struct Child {
    std::string name;
    std::string log;
    std::unique_ptr<platform::ChildProcess> process;
  };

  explicit PrivateService(Options options) : options_(std::move(options)) {}

  absl::Status Launch(const std::string& name, std::vector<std::string> arguments);

  const Options options_;
  std::string address_;
  // The server first.
  std::vector<Child> children_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_PRIVATE_SERVICE_H_
