// For tests of what calls a server, in its own process: the real one on 127.0.0.1 and a free port,
// with a temporary data directory, a worker inside that makes what clients read, and a store and a
// command loop that can be held up.
#ifndef LENGTHWISE_SERVER_API_TEST_SERVER_H_
#define LENGTHWISE_SERVER_API_TEST_SERVER_H_

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
#include "server/coordination/test_coordinator.h"

namespace lengthwise::server {

// Counts the snapshots that are read, and lets readers wait while it is held.
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
  // Opens the core; clients can connect after Serve. `prepare` may change its options before.
  // Without a resolver, the simple grid with ids "t0", "t1", ... in its order.
  TestServer();
  explicit TestServer(GridResolver resolve,
                      const std::function<void(TestCoordinator&)>& prepare = {});
  ~TestServer();

  void Serve(RpcServer::Options options = {});
  // Ends all calls and closes the core, as a process that is stopped.
  void Close();
  // After Close: on the same data directory, and on another port.
  void Reopen();
  RpcServer& rpc() { return *rpc_; }
  const std::string& address() const { return rpc_->address(); }
  // On a connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const;
  Core& core() { return *core_; }
  TestCoordinator& calls() { return core_; }
  ReadGate& read_gate() { return *read_gate_; }

  // Trials "t0", "t1", ..., all running: leased to a worker of the server's own. Returns the
  // experiment's name, "experiments/{name}-{number}".
  std::string AddExperiment(const std::string& name, int trials, const std::string& owner = "");
  // Stores events of running trials, in this order; each needs its trial and its fact.
  void Append(const std::vector<v1::Event>& events);
  void Append(const v1::Event& event) { Append(std::vector<v1::Event>{event}); }
  // A CANCELLED trial leaves one event, one that FAILED two, and one that SUCCEEDED three.
  void EndTrial(const std::string& trial, v1::TrialState state = v1::CANCELLED);
  // Cancels and deletes it.
  void Remove(const std::string& experiment);
  void SendProgress(const std::string& trial, int64_t done);
  // The trial's newest checkpoint.
  void PutModel(const std::string& trial, int64_t step, const std::string& bytes);
  // The lease that a trial belongs to, and its place in it.
  const v1::Lease& LeaseOf(const std::string& trial) const { return *runs_.at(trial).lease; }
  int PlaceOf(const std::string& trial) const { return runs_.at(trial).place; }

  // Files of artifacts, finished and not.
  int64_t FinishedArtifacts() const { return CountFiles(true); }
  int64_t UnfinishedArtifacts() const { return CountFiles(false); }

  // While it lives, the command loop applies nothing.
  class HeldLoop {
   public:
    explicit HeldLoop(TestServer& server);
    ~HeldLoop() { Release(); }
    void Release();

   private:
    std::shared_ptr<std::promise<void>> released_;
    bool is_released_ = false;
  };

  // Waits until `condition` holds; false after 30 s.
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
  std::map<std::string, Run> runs_;  // by trial's name
  int workers_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_TEST_SERVER_H_
