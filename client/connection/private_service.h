// A server and workers of the client's own, as child processes.
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

// Where `lengthwise run` keeps its experiments when nothing else is said:
// $XDG_DATA_HOME/lengthwise/runs, or
// ~/.local/share/lengthwise/runs.
std::string DefaultDataDirectory();

// The path of another of the programs: the environment variable `variable` where it is set;
// otherwise beside this program, or in ../`folder` as in Bazel's output. NOT_FOUND says where it
// was looked for.
absl::StatusOr<std::string> FindProgram(const std::string& name, const std::string& folder,
                                        const std::string& variable);

// The last `lines` lines of a file; empty where there is none.
std::string Tail(const std::string& path, int lines);

// For one thread, which must live as long as the service (see ChildProcess).
class PrivateService {
 public:
  struct Options {
    // Made where it is missing. Logs go to its folder logs/.
    std::string data_dir;
    // For the server to get ready.
    absl::Duration start_timeout = absl::Seconds(30);
  };

  // Starts a server on a free port of the loopback and waits until it serves. FAILED_PRECONDITION
  // when another server has the directory open; errors of the server come with the last lines of
  // its log.
  static absl::StatusOr<std::unique_ptr<PrivateService>> Start(const Options& options);

  // Stops workers and server.
  ~PrivateService();

  const std::string& address() const { return address_; }
  const std::string& data_dir() const { return options_.data_dir; }
  std::string log_directory() const { return options_.data_dir + "/logs"; }

  // Starts a worker for `device` ("cpu", "cuda:N", "auto") with so many threads of CPU kernels,
  // which trains one experiment only, by its full name. It does not wait for its registration.
  absl::Status StartWorker(const std::string& device, int threads, const std::string& experiment);

  // An error as soon as one of the processes has ended, which they never do by themselves: which
  // one, how, and the last lines of its log.
  absl::Status Check();

  // Lets the workers write checkpoints and give back their leases, then stops the server. A process
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
