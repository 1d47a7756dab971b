// Workers that wait for a pack (AcquireLease with a wait).
#ifndef LENGTHWISE_SERVER_COORDINATION_LEASE_WAITERS_H_
#define LENGTHWISE_SERVER_COORDINATION_LEASE_WAITERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/leases.h"
#include "server/coordination/ledger.h"

namespace lengthwise::server {

// Belongs to the command loop, but for waiting().
class LeaseWaiters {
 public:
  using Done = std::function<void(absl::StatusOr<v1::AcquireLeaseResponse>)>;

  // Both must outlive it.
  LeaseWaiters(Ledger& ledger, Leases& leases) : ledger_(ledger), leases_(leases) {}

  // The worker waits at most request.wait. An error for a worker that may not; `done` is not called
  // then. `given_up` says whether the caller has gone meanwhile: it gets no lease then, which would
  // only expire. It is cheap, does not block, and is not called any more once `done` was.
  absl::Status Add(const v1::AcquireLeaseRequest& request, const std::string& caller,
                   std::function<bool()> given_up, Done done);

  // In a transaction: grants leases to those for whom there is a pack, and lets go of those who
  // have waited long enough. Their answers are appended to `answers`.
  void Serve(std::vector<std::function<void()>>& answers);
  // After Serve, one of the two. When the commit failed, those who were served are told, and those
  // who were added since the last commit are forgotten: their command tells them.
  void Committed();
  void CommitFailed(const absl::Status& failure);
  // Answers everybody.
  void RefuseAll(const absl::Status& status);

  // How many wait. Any thread.
  int64_t waiting() const { return waiting_; }

  // When one has waited long enough.
  absl::Time NextDeadline() const;

 private:
  struct Waiter {
    std::string worker;
    // The principal that asked.
    std::string caller;
    absl::Time deadline;
    Done done;
    std::function<bool()> given_up;
    // The worker asked again: its caller gave this call up, whether or not that is known yet.
    bool superseded = false;
    // Added since the last commit.
    bool is_new = true;
  };

  void Count() { waiting_ = static_cast<int64_t>(waiters_.size()); }

  Ledger& ledger_;
  Leases& leases_;
  std::list<Waiter> waiters_;
  std::vector<Waiter> served_;
  std::atomic<int64_t> waiting_ = 0;  // the size of waiters_
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEASE_WAITERS_H_
