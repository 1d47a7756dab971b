#include "server/coordination/held_heartbeats.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

bool HasLostLease(const v1::HeartbeatResponse& response) {
  return std::any_of(
      response.leases().begin(), response.leases().end(),
      [](const v1::HeartbeatResponse::LeaseDirective& directive) { return directive.lost(); });
}

}  // namespace

absl::StatusOr<std::optional<v1::HeartbeatResponse>> HeldHeartbeats::Take(
    const v1::HeartbeatRequest& request, const std::string& caller, Done done) {
  ASSIGN_OR_RETURN(v1::HeartbeatResponse response, leases_.Heartbeat(request, caller));
  calls_.Supersede(request.worker_id());
  const absl::Duration wait =
      absl::Microseconds(google::protobuf::util::TimeUtil::DurationToMicroseconds(request.wait()));
  // Steps of the golden ratio fill the range evenly. Without it, a pause of the server would bring
  // all workers into step, and they would stay there.
  spread_ = std::fmod(spread_ + 0.618033988749895, 1.0);
  const absl::Duration hold = std::min(wait, leases_.longest_hold() * (0.8 + 0.2 * spread_));
  // While a lease of the worker has a directive, every heartbeat is answered at once, also one that
  // does not name the lease because it was sent before the lease arrived. The answer with the
  // directive may have been lost, and Serve tells each directive only once, so a held answer would
  // delay it until the hold ends.
  if (hold <= absl::ZeroDuration() || request.stopping() || HasLostLease(response) ||
      ledger_.scheduler().HasDirective(request.worker_id())) {
    return response;
  }
  ledger_.scheduler().ExpectSilence(request.worker_id(), hold);
  Call call;
  call.worker = request.worker_id();
  call.caller = caller;
  call.deadline = EndOf(ledger_.Now(), hold);
  call.done = std::move(done);
  call.leases.assign(request.leases().begin(), request.leases().end());
  calls_.Add(std::move(call));
  return std::nullopt;
}

void HeldHeartbeats::Serve(std::vector<std::function<void()>>& answers) {
  const auto answer = [this](const Call& call) {
    return std::optional(leases_.AnswerHeartbeat(call.worker, call.leases, call.caller));
  };
  // The answer covers all leases of the worker, also one taken after the heartbeat. The worker
  // names that one in its next heartbeat, which it sends at once.
  for (const std::string& worker : ledger_.scheduler().TakeWorkersToTell()) {
    calls_.DecideFor(worker, answer, answers);
  }
  calls_.DecideDue(ledger_.Now(), answer, answers);
}

}  // namespace lengthwise::server
