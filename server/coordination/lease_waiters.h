// Workers that wait for a pack (AcquireLease with a wait).
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

// Belongs to the command loop, except waiting().
class LeaseWaiters {
 public:
  using Done = WaitingCall<v1::AcquireLeaseResponse>::Done;

  // Both must outlive it.
  LeaseWaiters(Ledger& ledger, Leases& leases) : ledger_(ledger), leases_(leases) {}

  // The worker waits at most request.wait. An error for a worker that may not; `done` is not called
  // then. `given_up` returns true once the caller has gone: it gets no lease then, which would only
  // expire. It is cheap, does not block, and is not called after `done`.
  absl::Status Add(const v1::AcquireLeaseRequest& request, const std::string& caller,
                   std::function<bool()> given_up, Done done);

  // In a transaction: grants leases to those for whom there is a pack, and lets go of those who
  // have waited long enough. Their answers are appended to `answers`.
  void Serve(std::vector<std::function<void()>>& answers);
  // As in WaitingCalls.
  void Committed() { calls_.Committed(); }
  void CommitFailed(const absl::Status& failure) { calls_.CommitFailed(failure); }
  void RefuseAll(const absl::Status& status) { calls_.RefuseAll(status); }

  // Number of calls that wait. Any thread.
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
