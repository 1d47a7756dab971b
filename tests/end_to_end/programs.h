// Starts, kills and queries the real programs, on loopback and in the test's own directory.
#ifndef LENGTHWISE_TESTS_END_TO_END_PROGRAMS_H_
#define LENGTHWISE_TESTS_END_TO_END_PROGRAMS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "platform/child_process.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.grpc.pb.h"

namespace lengthwise::end_to_end {

// Paths of the programs under test, in the runfiles of the Bazel test.
inline constexpr char kServer[] = "server/lengthwise_server";
inline constexpr char kWorker[] = "worker/lengthwise_worker";
inline constexpr char kClient[] = "client/lengthwise";

// Upper bound for every wait of these tests. Exceeding it fails the test.
inline constexpr absl::Duration kDeadline = absl::Seconds(120);

// A server on a data directory that survives kills. Failures end the test program with a message.
class Server {
 public:
  // Creates `directory` if necessary. Leases expire after `lease_duration`. `flags` are appended to
  // the command line; unless they set --heartbeat_interval, it is 200 ms. `program` is the server's
  // path.
  Server(std::string directory, absl::Duration lease_duration, std::vector<std::string> flags = {},
         std::string program = kServer);

  // Starts the process and waits until it serves. A restart listens on the same port.
  void Start();
  void Kill();
  // The next start listens on this address.
  void MoveTo(std::string address) { address_ = std::move(address); }

  const std::string& address() const { return address_; }
  const std::string& metrics_address() const { return metrics_address_; }
  v1::ExperimentService::Stub& experiments() { return *experiments_; }

 private:
  const std::string directory_;
  const absl::Duration lease_duration_;
  const std::vector<std::string> flags_;
  const std::string program_;
  std::string address_;
  std::string metrics_address_;
  std::unique_ptr<platform::ChildProcess> process_;
  std::unique_ptr<v1::ExperimentService::Stub> experiments_;
};

// Returns a port that is free on each of these IPv4 addresses.
int FreePort(const std::vector<std::string>& hosts);

// Starts a worker for the server at `address`; its log goes to <directory>/worker.log.
std::unique_ptr<platform::ChildProcess> StartWorkerFor(const std::string& address,
                                                       const std::string& directory,
                                                       const std::string& program = kWorker,
                                                       const std::vector<std::string>& flags = {});
std::unique_ptr<platform::ChildProcess> StartWorker(const Server& server,
                                                    const std::string& directory,
                                                    const std::string& program = kWorker,
                                                    const std::vector<std::string>& flags = {});

// Flags with which a worker trains users' modules; a server takes the first alone. Empty if no
// Python here has PyTorch.
std::vector<std::string> ModuleFlags();
// Uploads bytes, as `lengthwise submit` does, and returns their SHA-256.
std::string Upload(Server& server, const std::string& bytes);
// Uploads a module with batch norm and dropout, and returns the specification's line for it.
std::string UploadModule(Server& server);

// A specification named "tiny" with one trial that finishes at once.
inline constexpr char kTinySpecification[] = R"yaml(name: tiny
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: none
learning_rates: 0.001
training: {steps: 10, batch_size: 4, lengths: {min: 1, max: 8}}
evaluation: {lengths: [4, 8], sequences: 8}
)yaml";

// A program's exit code and output.
struct Result {
  int code = -1;  // -1: it could not be started, or was still running at kDeadline
  std::string output;
};

// Runs a program to its end; its output goes through `output_file`. `environment` extends this
// process's. Calls `started` with the running process.
Result RunProgram(std::vector<std::string> arguments, const std::string& output_file,
                  std::vector<std::pair<std::string, std::string>> environment = {},
                  const std::function<void(const platform::ChildProcess&)>& started = nullptr);

// Submits a specification in YAML and returns the experiment's name.
std::string Submit(Server& server, const std::string& yaml);

// A watcher that survives the server's kills: it reconnects and resumes its position.
class Watcher {
 public:
  Watcher(Server& server, std::string experiment)
      : server_(server), experiment_(std::move(experiment)) {}

  // Watches until `enough` returns true for an event, or the experiment ends. Returns true in the
  // first case.
  bool WatchUntil(const std::function<bool(const v1::Event&)>& enough);

  // All events so far, in order of arrival.
  const std::vector<v1::Event>& events() const { return events_; }

 private:
  Server& server_;
  const std::string experiment_;
  std::vector<v1::Event> events_;
  int64_t next_position_ = 0;
};

// Command lines of all processes whose environment sets the variable `name` to `value`.
std::vector<std::string> ProcessesWithVariable(const std::string& name, const std::string& value);

}  // namespace lengthwise::end_to_end

#endif  // LENGTHWISE_TESTS_END_TO_END_PROGRAMS_H_
