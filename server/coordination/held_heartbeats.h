// Heartbeats whose answers are held: long polling. A worker of a large fleet reports rarely, and is
// still told at once that a trial was cancelled or its lease is preempted.
//
// One command of the loop records a heartbeat and holds its answer. Another command of the same
// thread makes a directive. If it ran before, the answer carries the directive; if it runs after,
// Serve finds the held answer. So no directive is missed.
#ifndef LENGTHWISE_SERVER_COORDINATION_HELD_HEARTBEATS_H_
#define LENGTHWISE_SERVER_COORDINATION_HELD_HEARTBEATS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/leases.h"
#include "server/coordination/ledger.h"
#include "server/coordination/waiting_calls.h"

namespace lengthwise::server {

// Belongs to the command loop, except held().
class HeldHeartbeats {
 public:
  using Done = WaitingCall<v1::HeartbeatResponse>::Done;

  // Both must outlive it.
  HeldHeartbeats(Ledger& ledger, Leases& leases) : ledger_(ledger), leases_(leases) {}

  // Records a heartbeat. Returns its answer if the worker does not wait (HeartbeatRequest.wait),
  // the fleet is small, or a lease of the worker has a directive. Otherwise returns nothing and
  // calls `done` later, within `wait`. Errors are those of Leases::Heartbeat; `done` is not called
  // then.
  absl::StatusOr<std::optional<v1::HeartbeatResponse>> Take(const v1::HeartbeatRequest& request,
                                                            const std::string& caller, Done done);

  // Called in a transaction, after everything that makes directives. Answers workers that have a
  // new directive, and those whose hold has ended. Appends the answers to `answers`.
  void Serve(std::vector<std::function<void()>>& answers);
  // As in WaitingCalls.
  void Committed() { calls_.Committed(); }
  void CommitFailed(const absl::Status& failure) { calls_.CommitFailed(failure); }
  void RefuseAll(const absl::Status& status) { calls_.RefuseAll(status); }

  // Number of heartbeats that are held. Any thread.
  int64_t held() const { return calls_.size(); }

  absl::Time NextDeadline() const { return calls_.NextDeadline(); }

 private:
  struct Call : WaitingCall<v1::HeartbeatResponse> {
    std::vector<v1::HeldLease> leases;
  };

  Ledger& ledger_;
  Leases& leases_;
  WaitingCalls<v1::HeartbeatResponse, Call> calls_;
  // 0 to 1: spreads the ends of the holds.
  double spread_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_HELD_HEARTBEATS_H_
