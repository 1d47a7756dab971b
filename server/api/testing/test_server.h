// TestServer: for tests of clients, in the test's own process. The real server on 127.0.0.1 and a
// free port, with a temporary data directory, a worker that produces what clients read, and a store
// and a command loop that a test can block.
#ifndef LENGTHWISE_SERVER_API_TESTING_TEST_SERVER_H_
#define LENGTHWISE_SERVER_API_TESTING_TEST_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "server/api/rpc_server.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {

// The experiment of AddExperiment("grid", n), and its first trial.
inline constexpr char kExperiment[] = "experiments/grid-1";
inline constexpr char kTrial[] = "experiments/grid-1/trials/t0";

// Counts the snapshots that are read, and blocks readers while it is held.
class ReadGate {
 public:
  void Pass();
  void Hold();
  void Release();
  int64_t reads();

 private:
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

class TestServer {
 public:
  // Opens the core; clients can connect after Serve. `prepare` may change its options first.
  // Without a resolver, the grid is simple, with ids "t0", "t1", ... in its order.
  TestServer();
  explicit TestServer(GridResolver resolve,
                      const std::function<void(TestCoordinator&)>& prepare = {});
  ~TestServer();

  void Serve(RpcServer::Options options = {});
  // Ends all calls and closes the core, like a process that is stopped.
  void Close();
  // After Close: opens the same data directory, on another port.
  void Reopen();
  RpcServer& rpc() { return *rpc_; }
  const std::string& address() const { return rpc_->address(); }
  // A new connection.
  std::shared_ptr<grpc::Channel> Connect() const;
  Core& core() { return *core_; }
  TestCoordinator& calls() { return core_; }
  ReadGate& read_gate() { return *read_gate_; }

  // Creates an experiment with running trials "t0", "t1", ..., leased to an internal worker.
  // Returns its name, "experiments/{name}-{number}".
  std::string AddExperiment(const std::string& name, int trials, const std::string& owner = "");
  // Leases trials of an experiment to an internal worker, which runs them.
  void LeaseTrials(const std::string& experiment, int trials);
  // Stores events of running trials, in this order. Each must have its trial and its fact.
  void Append(const std::vector<v1::Event>& events);
  void Append(const v1::Event& event) { Append(std::vector<v1::Event>{event}); }
  // A CANCELLED trial gets one more event, a FAILED one two, and a SUCCEEDED one three.
  void EndTrial(const std::string& trial, v1::TrialState state = v1::CANCELLED);
  // Cancels and deletes the experiment.
  void Remove(const std::string& experiment);
  void SendProgress(const std::string& trial, int64_t done);
  // In one call. Trials of one lease; `progress` names them, not their attempts.
  void SendProgress(const std::vector<v1::TrialProgress>& progress);
  // Stores the trial's newest checkpoint.
  void PutModel(const std::string& trial, int64_t step, const std::string& bytes);
  // The lease of a trial, and the trial's index in it.
  const v1::Lease& LeaseOf(const std::string& trial) const { return *runs_.at(trial).lease; }
  int PlaceOf(const std::string& trial) const { return runs_.at(trial).place; }

  // Number of artifact files, finished and unfinished.
  int64_t FinishedArtifacts() const { return CountFiles(true); }
  int64_t UnfinishedArtifacts() const { return CountFiles(false); }

  // Blocks the command loop during its lifetime.
  class HeldLoop {
   public:
    explicit HeldLoop(TestServer& server);
    ~HeldLoop() { Release(); }
    void Release();

   private:
    std::shared_ptr<std::promise<void>> released_;
    bool is_released_ = false;
  };

  // Waits until `condition` holds. Returns false after 30 s.
  static bool Await(const std::function<bool()>& condition);

 private:
  struct Run {
    std::shared_ptr<const v1::Lease> lease;
    int place = 0;
    int64_t sequence = 0;
    std::string worker;
  };

  int64_t CountFiles(bool finished) const;

  const std::shared_ptr<ReadGate> read_gate_ = std::make_shared<ReadGate>();
  TestCoordinator core_;
  std::unique_ptr<RpcServer> rpc_;
  std::map<std::string, Run> runs_;  // by trial name
  int workers_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_TESTING_TEST_SERVER_H_
