// Calls of workers that the command loop answers later: when there is something to tell, or at
// their deadlines. Shared by AcquireLease and Heartbeat.
#ifndef LENGTHWISE_SERVER_COORDINATION_WAITING_CALLS_H_
#define LENGTHWISE_SERVER_COORDINATION_WAITING_CALLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lengthwise::server {

template <typename Response>
struct WaitingCall {
  using Done = std::function<void(absl::StatusOr<Response>)>;

  std::string worker;
  // The principal that called.
  std::string caller;
  absl::Time deadline;
  Done done;
  // The worker has called again. The deadline has passed then.
  bool superseded = false;
};

// One call of each worker: a newer one supersedes it. An answer costs O(log n); a call that keeps
// waiting costs nothing. `Call` is a WaitingCall<Response>. Belongs to the command loop, except
// size().
template <typename Response, typename Call = WaitingCall<Response>>
class WaitingCalls {
 public:
  // The answer to a call. Absent: the call keeps waiting.
  using Decide = std::function<std::optional<absl::StatusOr<Response>>(const Call&)>;
  using Answers = std::vector<std::function<void()>>;

  void Add(Call call) {
    Supersede(call.worker);
    const int64_t id = next_id_++;
    newest_[call.worker] = id;
    deadlines_.insert({call.deadline, id});
    calls_.emplace(id, std::move(call));
    Count();
  }
  // The worker has called again, and needs no answer to its waiting call.
  void Supersede(const std::string& worker) {
    const auto newest = newest_.find(worker);
    if (newest == newest_.end()) return;
    const auto call = calls_.find(newest->second);
    deadlines_.erase({call->second.deadline, call->first});
    call->second.deadline = absl::InfinitePast();
    call->second.superseded = true;
    deadlines_.insert({call->second.deadline, call->first});
    newest_.erase(newest);
  }

  // Called in a transaction. Decide about all calls in the order of arrival, about those whose
  // deadline has passed, or about one worker's. Answers are appended to `answers`.
  void DecideAll(const Decide& decide, Answers& answers) {
    for (auto call = calls_.begin(); call != calls_.end();) call = DecideOne(call, decide, answers);
    Count();
  }
  void DecideDue(absl::Time now, const Decide& decide, Answers& answers) {
    std::vector<int64_t> due;
    for (auto call = deadlines_.begin(); call != deadlines_.end() && call->first <= now; ++call) {
      due.push_back(call->second);
    }
    for (const int64_t id : due) DecideOne(calls_.find(id), decide, answers);
    Count();
  }
  void DecideFor(const std::string& worker, const Decide& decide, Answers& answers) {
    const auto newest = newest_.find(worker);
    if (newest == newest_.end()) return;
    DecideOne(calls_.find(newest->second), decide, answers);
    Count();
  }

  // Call one of the two after each transaction. If the commit failed, calls that were answered get
  // the failure instead. Calls that were added since the last commit are dropped, because their
  // command answers them.
  void Committed() {
    answered_.clear();
    first_uncommitted_ = next_id_;
  }
  void CommitFailed(const absl::Status& failure) {
    for (const auto& done : answered_) done(failure);
    answered_.clear();
    for (auto call = calls_.lower_bound(first_uncommitted_); call != calls_.end();) {
      call = Remove(call);
    }
    Count();
  }
  // Answers all.
  void RefuseAll(const absl::Status& status) {
    for (const auto& [id, call] : calls_) call.done(status);
    calls_.clear();
    deadlines_.clear();
    newest_.clear();
    Count();
  }

  absl::Time NextDeadline() const {
    return deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.begin()->first;
  }
  // Any thread.
  int64_t size() const { return size_; }

 private:
  using Iterator = typename absl::btree_map<int64_t, Call>::iterator;

  Iterator DecideOne(Iterator call, const Decide& decide, Answers& answers) {
    std::optional<absl::StatusOr<Response>> response = decide(call->second);
    if (!response.has_value()) return ++call;
    answers.push_back([done = call->second.done, response = *std::move(response)]() mutable {
      done(std::move(response));
    });
    answered_.push_back(std::move(call->second.done));
    return Remove(call);
  }
  Iterator Remove(Iterator call) {
    deadlines_.erase({call->second.deadline, call->first});
    if (!call->second.superseded) newest_.erase(call->second.worker);
    return calls_.erase(call);
  }
  void Count() { size_ = static_cast<int64_t>(calls_.size()); }

  absl::btree_map<int64_t, Call> calls_;  // by number, ascending
  absl::btree_set<std::pair<absl::Time, int64_t>> deadlines_;
  absl::flat_hash_map<std::string, int64_t> newest_;  // by worker; not the superseded ones
  std::vector<typename WaitingCall<Response>::Done> answered_;
  int64_t next_id_ = 1;
  int64_t first_uncommitted_ = 1;
  std::atomic<int64_t> size_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_WAITING_CALLS_H_
