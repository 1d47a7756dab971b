// LeaseWaiters: the open AcquireLease calls of workers that wait for a pack.
#ifndef LENGTHWISE_SERVER_COORDINATION_LEASE_WAITERS_H_
#define LENGTHWISE_SERVER_COORDINATION_LEASE_WAITERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/leases.h"
#include "server/coordination/ledger.h"
#include "server/coordination/waiting_calls.h"

namespace lengthwise::server {

// Not thread-safe, except waiting(): belongs to the command loop.
class LeaseWaiters {
 public:
  using Done = WaitingCall<v1::AcquireLeaseResponse>::Done;

  // Both references must outlive it.
  LeaseWaiters(Ledger& ledger, Leases& leases) : ledger_(ledger), leases_(leases) {}

  // Adds a call that waits at most request.wait. Returns an error, and never calls `done`, if the
  // worker may not acquire leases. `given_up` returns true once the caller has gone: it gets no
  // lease, because that would only expire. `given_up` must be cheap and must not block; it is not
  // called after `done`.
  absl::Status Add(const v1::AcquireLeaseRequest& request, const std::string& caller,
                   std::function<bool()> given_up, Done done);

  // Called within a transaction. Grants leases to the workers that a pack waits for, and ends the
  // calls whose wait is over. Appends their answers to `answers`.
  void Serve(std::vector<std::function<void()>>& answers);
  // See WaitingCalls.
  void Committed() { calls_.Committed(); }
  void CommitFailed(const absl::Status& failure) { calls_.CommitFailed(failure); }
  void RefuseAll(const absl::Status& status) { calls_.RefuseAll(status); }

  // Number of waiting calls. Any thread.
  int64_t waiting() const { return calls_.size(); }

  absl::Time NextDeadline() const { return calls_.NextDeadline(); }

 private:
  struct Call : WaitingCall<v1::AcquireLeaseResponse> {
    std::function<bool()> given_up;
  };
  using Calls = WaitingCalls<v1::AcquireLeaseResponse, Call>;

  Ledger& ledger_;
  Leases& leases_;
  Calls calls_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEASE_WAITERS_H_
