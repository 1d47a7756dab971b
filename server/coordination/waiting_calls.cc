#include "server/coordination/waiting_calls.h"

#include <algorithm>
#include <cmath>

#include "google/protobuf/util/time_util.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

// Holds end together, at multiples of this: one wake-up of each thread on the way then answers many
// workers, about a hundred in the largest fleets.
constexpr absl::Duration kTick = absl::Milliseconds(50);

// When a hold ends. Not later than after `hold`.
absl::Time EndOf(absl::Time now, absl::Duration hold) {
  const absl::Time end = now + hold;
  if (hold < 2 * kTick) return end;
  return absl::UnixEpoch() + absl::Floor(end - absl::UnixEpoch(), kTick);
}

bool HasLostLease(const v1::SynchronizeResponse& response) {
  return std::any_of(response.leases().begin(), response.leases().end(),
                     [](const auto& status) { return status.lost(); });
}

}  // namespace

absl::Duration WaitingCalls::HoldOf(const v1::SynchronizeRequest& request) {
  // Steps of the golden ratio fill the range evenly. Without it, a pause of the server would bring
  // all workers into step, and they would stay there.
  spread_ = std::fmod(spread_ + 0.618033988749895, 1.0);
  const absl::Duration wait =
      absl::Microseconds(google::protobuf::util::TimeUtil::DurationToMicroseconds(request.wait()));
  return std::min(wait, leases_.LongestHold(request.wants_lease()) * (0.8 + 0.2 * spread_));
}

absl::Status WaitingCalls::Take(v1::SynchronizeRequest request, const std::string& caller,
                                std::function<bool()> given_up,
                                Done<v1::SynchronizeResponse> done) {
  RETURN_IF_ERROR(leases_.Hear(request, caller));
  const std::string worker = request.worker().worker_id();
  if (const auto earlier = numbers_.find(worker); earlier != numbers_.end()) {
    End(calls_.find(earlier->second), v1::SynchronizeResponse());
  }
  Scheduler& scheduler = ledger_.scheduler();
  ASSIGN_OR_RETURN(const v1::SynchronizeResponse known,
                   leases_.Answer(request, caller, /*grants=*/false));
  const WorkerSession* const session = scheduler.FindSession(worker);
  const bool has_untold =
      session != nullptr && !scheduler.LiveTrials(worker, session->untold).empty();
  // While a lease of the worker has a directive, every call is answered at once, also one that does
  // not list the lease because it was sent before the lease arrived. The answer with the directive
  // may have been lost, and Serve tells each directive only once, so a held answer would delay it
  // until the hold ends.
  const bool waits =
      !request.stopping() && !scheduler.HasDirective(worker) && !has_untold && !HasLostLease(known);
  const absl::Duration hold = waits ? HoldOf(request) : absl::ZeroDuration();
  scheduler.ExpectSilence(worker, hold);
  const int64_t number = next_++;
  Call call;
  call.deadline = EndOf(ledger_.Now(), hold);
  call.caller = caller;
  call.given_up = std::move(given_up);
  call.done = std::move(done);
  call.request.mutable_worker()->set_worker_id(worker);
  call.request.mutable_leases()->Swap(request.mutable_leases());
  call.request.set_wants_lease(request.wants_lease());
  if (request.wants_lease()) wanting_.insert(number);
  deadlines_.insert({call.deadline, number});
  numbers_[worker] = number;
  calls_.emplace(number, std::move(call));
  size_ = static_cast<int64_t>(calls_.size());
  return absl::OkStatus();
}

WaitingCalls::Answers WaitingCalls::Serve() {
  const absl::Time now = ledger_.Now();
  Scheduler& scheduler = ledger_.scheduler();
  lease_bytes_ = 0;
  // Without a runnable pack no wanting worker is visited, so that ten thousand idle ones do not
  // slow every group of commands.
  if (!ledger_.full() && scheduler.HasRunnable(now)) {
    const std::vector<int64_t> wanting(wanting_.begin(), wanting_.end());
    for (const int64_t number : wanting) {
      const auto call = calls_.find(number);
      if (lease_bytes_ >= kMostLeaseBytes) break;
      if (!scheduler.HasRunnable(call->second.request.worker().worker_id(), now) ||
          call->second.given_up()) {
        continue;
      }
      Answer answer = leases_.Answer(call->second.request, call->second.caller, /*grants=*/true);
      if (!answer.ok() || answer->has_lease()) End(call, std::move(answer));
    }
  }
  // The answer covers all leases of the worker, also one granted after the call. The worker lists
  // that one in its next call, which it sends at once.
  for (const std::string& worker : scheduler.TakeWorkersToTell()) {
    const auto number = numbers_.find(worker);
    if (number != numbers_.end()) End(calls_.find(number->second), /*grants=*/false);
  }
  std::vector<int64_t> due;
  for (auto each = deadlines_.begin(); each != deadlines_.end() && each->first <= now; ++each) {
    due.push_back(each->second);
  }
  for (const int64_t number : due) {
    const auto call = calls_.find(number);
    // Its deadline stays, so that the next Serve is due at once.
    if (call->second.request.wants_lease() && lease_bytes_ >= kMostLeaseBytes) continue;
    End(call, /*grants=*/true);
  }
  return std::exchange(answers_, {});
}

void WaitingCalls::End(Calls::iterator call, bool grants) {
  grants = grants && !call->second.given_up();
  End(call, leases_.Answer(call->second.request, call->second.caller, grants));
}

void WaitingCalls::End(Calls::iterator call, Answer answer) {
  if (answer.ok() && answer->has_lease()) lease_bytes_ += answer->lease().SpaceUsedLong();
  answers_.push_back([done = call->second.done, answer = std::move(answer)]() mutable {
    done(std::move(answer));
  });
  answered_.emplace_back(call->first, std::move(call->second.done));
  Remove(call);
}

void WaitingCalls::Remove(Calls::iterator call) {
  numbers_.erase(call->second.request.worker().worker_id());
  wanting_.erase(call->first);
  deadlines_.erase({call->second.deadline, call->first});
  calls_.erase(call);
  size_ = static_cast<int64_t>(calls_.size());
}

void WaitingCalls::Committed() {
  answered_.clear();
  first_uncommitted_ = next_;
}

WaitingCalls::Answers WaitingCalls::CommitFailed(const absl::Status& failure) {
  Answers answers;
  for (auto& [number, done] : std::exchange(answered_, {})) {
    if (number < first_uncommitted_) {
      answers.push_back([done = std::move(done), failure] { done(failure); });
    }
  }
  while (!calls_.empty() && calls_.rbegin()->first >= first_uncommitted_) {
    Remove(std::prev(calls_.end()));
  }
  return answers;
}

WaitingCalls::Answers WaitingCalls::RefuseAll(const absl::Status& status) {
  while (!calls_.empty()) End(calls_.begin(), status);
  return std::exchange(answers_, {});
}

int64_t WaitingCalls::IdleWorkers(absl::string_view experiment) const {
  const Scheduler& scheduler = ledger_.scheduler();
  const absl::Time now = ledger_.Now();
  return std::count_if(wanting_.begin(), wanting_.end(), [&](int64_t number) {
    const Call& call = calls_.at(number);
    return !call.given_up() && scheduler.IsIdle(call.request.worker().worker_id(), now, experiment);
  });
}

}  // namespace lengthwise::server
