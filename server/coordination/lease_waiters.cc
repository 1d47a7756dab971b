#include "server/coordination/lease_waiters.h"

#include <algorithm>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

constexpr absl::Duration kMaxWait = absl::Seconds(60);

}  // namespace

absl::Status LeaseWaiters::Add(const v1::AcquireLeaseRequest& request, const std::string& caller,
                               std::function<bool()> given_up, Done done) {
  const std::string& worker = request.worker_id();
  RETURN_IF_ERROR(leases_.CheckWorker(worker, caller));
  const absl::Duration wait =
      absl::Microseconds(google::protobuf::util::TimeUtil::DurationToMicroseconds(request.wait()));
  for (Waiter& waiter : waiters_) waiter.superseded |= waiter.worker == worker;
  Waiter& waiter = waiters_.emplace_back();
  waiter.worker = worker;
  waiter.caller = caller;
  waiter.deadline = ledger_.Now() + std::clamp(wait, absl::ZeroDuration(), kMaxWait);
  waiter.done = std::move(done);
  waiter.given_up = std::move(given_up);
  Count();
  return absl::OkStatus();
}

void LeaseWaiters::Serve(std::vector<std::function<void()>>& answers) {
  const absl::Time now = ledger_.Now();
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    const bool late = waiter->deadline <= now || waiter->superseded;
    if (!late && !ledger_.scheduler().HasRunnable(waiter->worker, now)) {
      ++waiter;
      continue;
    }
    absl::StatusOr<v1::AcquireLeaseResponse> response = v1::AcquireLeaseResponse();
    const bool given_up = waiter->given_up();
    if (waiter->superseded) {
      response->set_no_lease_reason("the worker asked again");
    } else if (given_up) {
      response->set_no_lease_reason("the worker gave the call up");
    } else {
      response = leases_.Acquire(waiter->worker, waiter->caller);
    }
    if (!late && !given_up && response.ok() && !response->has_lease()) {
      ++waiter;
      continue;
    }
    answers.push_back([done = waiter->done, response = std::move(response)] { done(response); });
    served_.push_back(std::move(*waiter));
    waiter = waiters_.erase(waiter);
  }
  Count();
}

void LeaseWaiters::Committed() {
  served_.clear();
  for (Waiter& waiter : waiters_) waiter.is_new = false;
}

void LeaseWaiters::CommitFailed(const absl::Status& failure) {
  for (Waiter& waiter : served_) waiter.done(failure);
  served_.clear();
  waiters_.remove_if([](const Waiter& waiter) { return waiter.is_new; });
  Count();
}

void LeaseWaiters::RefuseAll(const absl::Status& status) {
  for (Waiter& waiter : waiters_) waiter.done(status);
  waiters_.clear();
  Count();
}

absl::Time LeaseWaiters::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  for (const Waiter& waiter : waiters_) deadline = std::min(deadline, waiter.deadline);
  return deadline;
}

}  // namespace lengthwise::server
