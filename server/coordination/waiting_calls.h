// WaitingCalls: workers' calls whose answers the command loop holds until there is something to
// tell: long polling. A worker of a large fleet reports rarely, and is still told at once that a
// trial was cancelled, that its lease is preempted, or that a pack waits for it.
//
// The commands of a group record calls and make directives. After them, Serve answers the calls
// that have something to be told, so no directive is missed.
#ifndef LENGTHWISE_SERVER_COORDINATION_WAITING_CALLS_H_
#define LENGTHWISE_SERVER_COORDINATION_WAITING_CALLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/leases.h"
#include "server/coordination/ledger.h"

namespace lengthwise::server {

// Answers a call. Call it once, on any thread: that of the command loop after a commit, or the
// caller's if the call was refused. Must not block.
template <typename T>
using Done = std::function<void(absl::StatusOr<T>)>;

// One call of each worker: a later one ends it with an empty answer, so that a worker that calls
// without end is answered once in each group. An answer costs O(log n); a call that keeps waiting
// costs nothing. Belongs to the command loop, which changes it only while it applies a group, so
// that IdleWorkers may be called between groups.
class WaitingCalls {
 public:
  using Answer = absl::StatusOr<v1::SynchronizeResponse>;
  using Answers = std::vector<std::function<void()>>;

  // Serve grants no more leases to a group when they have this much memory.
  static constexpr size_t kMostLeaseBytes = 8 << 20;

  // Both must outlive it.
  WaitingCalls(Ledger& ledger, Leases& leases) : ledger_(ledger), leases_(leases) {}

  // Records a call. Serve calls `done`: the next one if there is something to tell or nothing to
  // wait for, otherwise within request.wait. After an error it does not. `given_up` returns true if
  // the caller has gone, or cannot be told of a lease now: it gets none, because that would only
  // expire. `given_up` must be cheap and must not block; it is not called after `done`.
  absl::Status Take(v1::SynchronizeRequest request, const std::string& caller,
                    std::function<bool()> given_up, Done<v1::SynchronizeResponse> done);

  // Called in a transaction, after everything that makes directives. Grants leases to the workers
  // that a pack waits for, and answers those that have a new directive, have called again, or have
  // waited for long enough. Returns the answers. Beyond kMostLeaseBytes, workers that want a lease
  // wait for the next Serve, which is due at once.
  Answers Serve();

  // Call one of the two after each transaction. If the commit failed, calls that were answered get
  // the failure instead. Calls that were taken since the last commit are dropped, because their
  // commands answer them.
  void Committed();
  Answers CommitFailed(const absl::Status& failure);
  // Answers all.
  Answers RefuseAll(const absl::Status& status);

  absl::Time NextDeadline() const {
    if (lease_bytes_ >= kMostLeaseBytes) return absl::InfinitePast();  // Serve left some
    return deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.begin()->first;
  }
  // Number of waiting calls. Any thread.
  int64_t size() const { return size_; }
  // Number of workers that wait for a lease and would take packs of the experiment
  // (Scheduler::IsIdle).
  int64_t IdleWorkers(absl::string_view experiment) const;

 private:
  struct Call {
    // Without what Leases::Hear has recorded.
    v1::SynchronizeRequest request;
    std::string caller;
    absl::Time deadline;
    std::function<bool()> given_up;
    Done<v1::SynchronizeResponse> done;
  };
  using Calls = absl::btree_map<int64_t, Call>;  // by number, in the order of arrival

  // How long the answer to a call may be held; zero: not at all.
  absl::Duration HoldOf(const v1::SynchronizeRequest& request);
  // Answers a call and removes it. `grants`: with a lease, if it wants one.
  void End(Calls::iterator call, bool grants);
  void End(Calls::iterator call, Answer answer);
  void Remove(Calls::iterator call);

  Ledger& ledger_;
  Leases& leases_;
  Calls calls_;
  absl::btree_set<int64_t> wanting_;  // those that want a lease
  absl::btree_set<std::pair<absl::Time, int64_t>> deadlines_;
  absl::flat_hash_map<std::string, int64_t> numbers_;  // by worker
  Answers answers_;                                    // since the last Serve
  // Since the last commit.
  std::vector<std::pair<int64_t, Done<v1::SynchronizeResponse>>> answered_;
  int64_t next_ = 1;
  int64_t first_uncommitted_ = 1;
  size_t lease_bytes_ = 0;  // that the last Serve has granted
  // 0 to 1: spreads the ends of the holds.
  double spread_ = 0;
  std::atomic<int64_t> size_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_WAITING_CALLS_H_
