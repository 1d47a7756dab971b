// The real programs, as tests start, kill and ask them: on loopback, in the test's own directory.
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

// Every wait of these tests ends here at the latest, and fails the test.
inline constexpr absl::Duration kDeadline = absl::Seconds(120);

// A server on a data directory that survives its kills. Failures end the test program with a
// message.
class Server {
 public:
  // `directory` is made if it is missing. Leases last `lease_duration`. `flags` are added to the
  // command line; where they do not set --heartbeat_interval, it is 200 ms. `program` is the
  // server's path.
  Server(std::string directory, absl::Duration lease_duration, std::vector<std::string> flags = {},
         std::string program = kServer);

  // Starts the process and waits until it serves; a second start listens on the first one's port.
  void Start();
  void Kill();
  // The next start listens on this host, on the same port.
  void MoveTo(const std::string& host);

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

// Starts a worker for the server at `address`; its log goes to <directory>/worker.log.
std::unique_ptr<platform::ChildProcess> StartWorkerFor(const std::string& address,
                                                       const std::string& directory,
                                                       const std::string& program = kWorker);
std::unique_ptr<platform::ChildProcess> StartWorker(const Server& server,
                                                    const std::string& directory,
                                                    const std::string& program = kWorker);

// A specification of one trial that takes no time. Called "tiny".
inline constexpr char kTinySpecification[] = R"yaml(name: tiny
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: none
learning_rates: 0.001
training: {steps: 10, batch_size: 4, lengths: {min: 1, max: 8}}
evaluation: {lengths: [4, 8], sequences: 8}
)yaml";

// How a program ended, and what it wrote.
struct Result {
  int code = -1;  // -1: it could not be started, or has not ended by kDeadline
  std::string output;
};

// Runs a program to its end; its output goes through `output_file`. `environment` is added to ours.
// `started` is called with the running process.
Result RunProgram(std::vector<std::string> arguments, const std::string& output_file,
                  std::vector<std::pair<std::string, std::string>> environment = {},
                  const std::function<void(const platform::ChildProcess&)>& started = nullptr);

// Submits a specification in YAML and returns the experiment's name.
std::string Submit(Server& server, const std::string& yaml);

// A watcher that survives the server's kills: it reconnects where it stopped.
class Watcher {
 public:
  Watcher(Server& server, std::string experiment)
      : server_(server), experiment_(std::move(experiment)) {}

  // Watches until `enough` says so of an event, or the experiment has ended; returns which of the
  // two (true: enough).
  bool WatchUntil(const std::function<bool(const v1::Event&)>& enough);

  // All events so far, in the order of their arrival.
  const std::vector<v1::Event>& events() const { return events_; }

 private:
  Server& server_;
  const std::string experiment_;
  std::vector<v1::Event> events_;
  int64_t next_position_ = 0;
};

// Command lines of the processes that have the environment variable `name` set to `value`,
// themselves or inherited.
std::vector<std::string> ProcessesWithVariable(const std::string& name, const std::string& value);

}  // namespace lengthwise::end_to_end

#endif  // LENGTHWISE_TESTS_END_TO_END_PROGRAMS_H_
