// A server and its workers as processes that tests kill, start again and ask: on loopback, in one
// directory. What dies is noticed by Revive alone.
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

// The environment that a process is started with, beside this one's.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Not thread-safe: one thread owns a fleet. Failures to start a process end the program.
class Fleet {
 public:
  struct Options {
    // Made if it is missing; has logs and the server's data.
    std::string directory;
    std::string server_program;
    // The arguments behind the program get "--server" and "--worker_id" added.
    std::vector<std::string> worker_command;
    absl::Duration lease_duration = absl::Seconds(1);
    absl::Duration heartbeat_interval = absl::Milliseconds(100);
  };

  explicit Fleet(Options options);

  // Starts the server and waits until it serves; false when it died before. Always the same port.
  bool StartServer(const Environment& environment = {});
  // Starts worker number `index`, 0 to 99; one that runs under this number is killed before.
  void StartWorker(int index, const Environment& environment = {});
  // SIGKILL.
  void KillServer();
  void KillWorker(int index);
  // SIGTERM; waits for the end. One that dies of SIGKILL instead counts as a death.
  platform::ChildProcess::Exit TerminateServer();
  platform::ChildProcess::Exit TerminateWorker(int index);

  // Starts again, without an environment, what has died by itself since it was started or killed.
  // Waits for up to `pace` where everything lives. Returns how many had died.
  int Revive(absl::Duration pace = absl::Milliseconds(10));
  // Deaths of processes that nobody killed.
  int deaths() const { return deaths_; }

  // Repeats a call, with Revive in between, until it is not UNAVAILABLE, and returns what it
  // returned then; DEADLINE_EXCEEDED after two minutes.
  grpc::Status Call(
      const std::function<grpc::Status(v1::ExperimentService::Stub&, grpc::ClientContext&)>& call);
  // Revives and asks again until `done` says so; false after `timeout`. `done` is asked with the
  // trials of the experiment.
  bool AwaitTrials(const std::string& experiment,
                   const std::function<bool(const std::vector<v1::Trial>&)>& done,
                   absl::Duration timeout = absl::Minutes(2));
  // All that follow end the program when the server refuses them.
  std::vector<v1::Trial> Trials(const std::string& experiment);
  std::string Submit(const std::string& yaml, const std::string& request_id);
  std::vector<v1::Event> Log(const std::string& experiment);
  std::vector<std::string> Experiments();

  // To the server, for other services; null before it first served.
  const std::shared_ptr<grpc::ChannelInterface>& channel() const { return channel_; }
  const std::string& address() const { return address_; }
  const std::string& directory() const { return options_.directory; }
  std::string data_directory() const { return options_.directory + "/data"; }

 private:
  using Process = std::unique_ptr<platform::ChildProcess>;

  const Options options_;
  std::string address_;
  Process server_;
  std::vector<Process> workers_;  // by index; null where none was started, or was ended on purpose
  std::shared_ptr<grpc::ChannelInterface> channel_;
  std::unique_ptr<v1::ExperimentService::Stub> stub_;
  int deaths_ = 0;
};

// Whether all have ended.
bool AllEnded(const std::vector<v1::Trial>& trials);

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_FLEET_H_
