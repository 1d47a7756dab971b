// A server and its workers as processes that tests kill, restart and query, on loopback and in one
// directory. Only Revive detects deaths.
#ifndef LENGTHWISE_TESTS_FAULTS_FLEET_H_
#define LENGTHWISE_TESTS_FAULTS_FLEET_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "platform/child_process.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.grpc.pb.h"

namespace lengthwise::faults {

// Environment variables added to this process's environment.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Not thread-safe: a single thread owns a fleet. Failing to start a process ends the program.
class Fleet {
 public:
  struct Options {
    // Created if necessary. Holds the logs and the server's data.
    std::string directory;
    std::string server_program;
    // The worker program and its arguments. "--server" and "--worker_id" are appended.
    std::vector<std::string> worker_command;
    absl::Duration lease_duration = absl::Seconds(1);
    absl::Duration heartbeat_interval = absl::Milliseconds(100);
  };

  explicit Fleet(Options options);

  // Starts the server and waits until it serves. Returns false if it died first. The port never
  // changes.
  bool StartServer(const Environment& environment = {});
  // Starts worker number `index`, 0 to 99. Kills a running worker with this number first.
  void StartWorker(int index, const Environment& environment = {});
  // Sends SIGKILL.
  void KillServer();
  void KillWorker(int index);
  // Sends SIGTERM and waits for the end. A process that dies of SIGKILL instead counts as a death.
  platform::ChildProcess::Exit TerminateServer();
  platform::ChildProcess::Exit TerminateWorker(int index);

  // Restarts, without an environment, each process that died on its own since it was started or
  // killed. Waits up to `pace` if all are alive. Returns the number of deaths.
  int Revive(absl::Duration pace = absl::Milliseconds(10));
  // Deaths of processes that no test killed.
  int deaths() const { return deaths_; }

  // Repeats a call, with Revive in between, while it returns UNAVAILABLE. Returns the last status;
  // DEADLINE_EXCEEDED after two minutes.
  grpc::Status Call(
      const std::function<grpc::Status(v1::ExperimentService::Stub&, grpc::ClientContext&)>& call);
  // Revives and polls the experiment's trials until `done` returns true for them. Returns false
  // after `timeout`.
  bool AwaitTrials(const std::string& experiment,
                   const std::function<bool(const std::vector<v1::Trial>&)>& done,
                   absl::Duration timeout = absl::Minutes(2));
  // The methods below end the program if the server rejects them.
  std::vector<v1::Trial> Trials(const std::string& experiment);
  std::string Submit(const std::string& yaml, const std::string& request_id);
  std::vector<v1::Event> Log(const std::string& experiment);
  std::vector<std::string> Experiments();

  // The channel to the server, for other services. Null before it first served.
  const std::shared_ptr<grpc::ChannelInterface>& channel() const { return channel_; }
  const std::string& address() const { return address_; }
  const std::string& directory() const { return options_.directory; }
  std::string data_directory() const { return options_.directory + "/data"; }
  // The server's --artifacts: a directory if the environment variable LENGTHWISE_TEST_SHARED_PATH
  // is set, an object store with LENGTHWISE_TEST_ON_S3, otherwise empty. So suites run on all kinds
  // of store.
  const std::string& artifacts() const { return artifacts_; }

 private:
  using Process = std::unique_ptr<platform::ChildProcess>;

  const Options options_;
  const std::string artifacts_;
  std::string address_;
  Process server_;
  std::vector<Process> workers_;  // by index; null if never started or stopped on purpose
  std::shared_ptr<grpc::ChannelInterface> channel_;
  std::unique_ptr<v1::ExperimentService::Stub> stub_;
  int deaths_ = 0;
};

// Returns true if all trials have ended.
bool AllEnded(const std::vector<v1::Trial>& trials);

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_FLEET_H_
