// SimulatedWorker: a worker's process and its successors. It leases packs, "trains" them, resends
// recorded events until they are acknowledged, drains, is killed, and returns, under another name
// or the same one.
#ifndef LENGTHWISE_SERVER_SIMULATION_SIMULATED_WORKER_H_
#define LENGTHWISE_SERVER_SIMULATION_SIMULATED_WORKER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "proto/worker_service.pb.h"
#include "server/simulation/simulated_server.h"
#include "server/simulation/simulated_trial.h"
#include "server/simulation/timeline.h"

namespace lengthwise::server {

class SimulatedWorker {
 public:
  // All references must outlive it. `number` is its index among the workers.
  SimulatedWorker(int number, Timeline& timeline, const Weather& weather, Network& network,
                  SimulatedServer& server);

  // The machine's time is up: the worker drains, and is killed if that takes too long.
  void EndWallTime();

 private:
  struct RunningTrial {
    v1::LeasedTrial leased;
    Nature nature = Nature::kGood;
    int64_t step = 0;
    int64_t checkpoint_step = 0;
    int64_t sequence = 0;          // of the last event
    std::deque<v1::Event> unsent;  // not acknowledged
    absl::Time sent = absl::InfinitePast();
    bool ended = false;  // has its outcome, was cancelled, or belongs to another worker
  };

  void Start();
  void Beat();
  void SetHeartbeatInterval(const google::protobuf::Duration& interval);
  void Work();
  // The process ends and another one starts in its place.
  void End();
  // True if the process ends at this heartbeat.
  bool MeetsItsEnd();
  // Sends a command through the network. Its result returns through the network, unless another
  // process has replaced this one by then.
  template <typename Response>
  void Call(std::function<absl::StatusOr<Response>(Engine&)> command,
            std::function<void(const absl::StatusOr<Response>&)> take);

  // Others present this worker's lease, a guess of it, or the worker's name. All must be refused.
  void Intrude();
  // Calls the server as a worker's second thread does.
  void Synchronize();
  void Take(const v1::Lease& lease);
  void Apply(const v1::SynchronizeResponse& response);
  void Advance(RunningTrial& trial);
  void Emit(RunningTrial& trial, v1::Event event);
  void EmitOutcome(RunningTrial& trial, v1::Outcome::Kind kind, const std::string& reason);
  void EmitCheckpoint(RunningTrial& trial);
  void Send(RunningTrial& trial);
  RunningTrial* Find(const std::string& name);
  // Drains: stores checkpoints, waits until everything is acknowledged, gives the lease back.
  void Drain(const std::string& reason);
  void GiveBack();
  bool IsSent() const;
  void DropLease();

  const int number_;
  const std::string principal_;
  const int64_t memory_;
  Timeline& timeline_;
  const Weather& weather_;
  Network& network_;
  SimulatedServer& server_;

  int64_t life_ = 0;  // number of the process
  std::string id_;
  int64_t calls_ = 0;
  int64_t newest_token_ = 0;
  std::vector<v1::ReleasedLease> released_;  // until an answer comes
  bool leaving_ = false;
  absl::Duration heartbeat_interval_ = absl::Seconds(1);
  absl::Time cut_off_until_ = absl::InfinitePast();
  std::optional<v1::Lease> lease_;
  std::vector<RunningTrial> trials_;
  std::string draining_;  // the reason; empty if not draining
  absl::Time drain_end_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_SIMULATED_WORKER_H_
