#include "server/coordination/lease_waiters.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "google/protobuf/util/time_util.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

constexpr absl::Duration kMaxWait = absl::Seconds(60);

}  // namespace

absl::Status LeaseWaiters::Add(const v1::AcquireLeaseRequest& request, const std::string& caller,
                               std::function<bool()> given_up, Done done) {
  RETURN_IF_ERROR(leases_.CheckWorker(request.worker_id(), caller));
  const absl::Duration wait =
      absl::Microseconds(google::protobuf::util::TimeUtil::DurationToMicroseconds(request.wait()));
  Call call;
  call.worker = request.worker_id();
  call.caller = caller;
  call.deadline = ledger_.Now() + std::clamp(wait, absl::ZeroDuration(), kMaxWait);
  call.done = std::move(done);
  call.given_up = std::move(given_up);
  calls_.Add(std::move(call));
  return absl::OkStatus();
}

void LeaseWaiters::Serve(std::vector<std::function<void()>>& answers) {
  using Answer = absl::StatusOr<v1::AcquireLeaseResponse>;
  const absl::Time now = ledger_.Now();
  const auto decide = [&](const Call& call) -> std::optional<Answer> {
    const bool late = call.deadline <= now;
    if (!late && !ledger_.scheduler().HasRunnable(call.worker, now)) return std::nullopt;
    Answer response = v1::AcquireLeaseResponse();
    const bool given_up = call.given_up();
    if (call.superseded) {
      response->set_no_lease_reason("the worker asked again");
    } else if (given_up) {
      response->set_no_lease_reason("the worker gave the call up");
    } else {
      response = leases_.Acquire(call.worker, call.caller);
    }
    if (!late && !given_up && response.ok() && !response->has_lease()) return std::nullopt;
    return response;
  };
  // Without a runnable pack only expired calls are visited, so that ten thousand idle workers do
  // not slow every group of commands.
  if (ledger_.scheduler().HasRunnable(now)) {
    calls_.DecideAll(decide, answers);
  } else {
    calls_.DecideDue(now, decide, answers);
  }
}

}  // namespace lengthwise::server
