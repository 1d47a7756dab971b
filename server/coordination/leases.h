// Workers and their leases: lease ids, and what workers say and are told in Synchronize.
#ifndef LENGTHWISE_SERVER_COORDINATION_LEASES_H_
#define LENGTHWISE_SERVER_COORDINATION_LEASES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/fleet_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/fleet.h"
#include "server/coordination/ledger.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/artifact_store.h"
#include "server/storage/records.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Ids by which workers prove that they hold a lease. An id cannot be guessed, and only the
// principal that acquired the lease can use it. Ids are computed from the store's key and not
// stored, so a restarted server accepts them all. Thread-safe.
class LeaseIds {
 public:
  explicit LeaseIds(LeaseKey key) : key_(std::move(key)) {}

  // "lease-17-<32 hexadecimal digits>". "lease-17" for a lease granted by an older release, which
  // is not bound to a principal.
  std::string Make(Token token, absl::string_view principal) const;
  // True if `id` is the id of this principal's lease.
  bool Fits(absl::string_view id, Token token, absl::string_view principal) const;
  // PERMISSION_DENIED, with a reason, unless it fits.
  absl::Status Check(absl::string_view id, Token token, absl::string_view principal) const;

 private:
  const LeaseKey key_;
};

// Belongs to the command loop. `caller` is the calling principal: PERMISSION_DENIED if the worker
// or its leases belong to another one. Errors are those that the rpcs document.
class Leases {
 public:
  // Heartbeat interval of each worker in a fleet of `workers`: `least`, or longer, up to
  // kLongestHeartbeatInterval, if the fleet would send more than kMostHeartbeatsPerSecond, so that
  // a cancellation reaches a worker within 2 s even if no answer is held. Longer than `least` only
  // up to a quarter of `lease`, which must not expire between two heartbeats.
  static absl::Duration HeartbeatInterval(absl::Duration least, absl::Duration lease,
                                          int64_t workers);
  // Maximum time that the answer to a call is held in a fleet of `workers`, so that it sends about
  // kMostHeartbeatsPerSecond. Zero if it sends fewer at the interval `least`. At most a quarter of
  // `lease`, so that a worker can lose an answer and still renew its lease in time.
  static absl::Duration LongestHold(absl::Duration least, absl::Duration lease, int64_t workers);
  static constexpr int64_t kMostHeartbeatsPerSecond = 2'000;
  static constexpr absl::Duration kLongestHeartbeatInterval = absl::Milliseconds(1750);

  // All references must outlive it. `heartbeat_interval` is that of a small fleet.
  Leases(absl::Duration lease_duration, absl::Duration heartbeat_interval, Ledger& ledger,
         ArtifactStore& artifacts, Fleet& fleet, const LeaseIds& ids);

  // Records a worker's call: registers the worker if its session is new, renews its leases and ends
  // those that it gives back.
  absl::Status Hear(const v1::SynchronizeRequest& request, const std::string& caller);
  // The answer to a call that was recorded; only its worker, `leases` and `wants_lease` count. It
  // renews nothing: the worker was last heard of when it called. `grants`: with a lease, if the
  // worker wants one. UNAVAILABLE if the checkpoints of several trials cannot be read.
  absl::StatusOr<v1::SynchronizeResponse> Answer(const v1::SynchronizeRequest& request,
                                                 const std::string& caller, bool grants);
  absl::StatusOr<v1::HoldLeasesResponse> Hold(const v1::HoldLeasesRequest& request,
                                              const std::string& caller);
  absl::StatusOr<v1::ResumeLeasesResponse> Resume(const v1::ResumeLeasesRequest& request);
  // FAILED_PRECONDITION, with the side to upgrade, unless the worker has this server's version of
  // the API.
  static absl::Status CheckVersion(const v1::WorkerDescription& worker);
  // Maximum time for which an answer is held in this fleet.
  absl::Duration LongestHold(bool wants_lease) const;

 private:
  absl::Status Register(const v1::SynchronizeRequest& request, const std::string& caller);
  // Ends the leases that the worker gives back. `listed` are those that it holds (TokensOf).
  absl::Status Release(const v1::SynchronizeRequest& request, const std::string& caller,
                       const std::vector<Token>& listed);
  // Adds the status of each lease that the worker lists.
  absl::Status AddStatuses(const v1::SynchronizeRequest& request, const std::string& caller,
                           v1::SynchronizeResponse& response);
  // Adds a lease, or why there is none.
  absl::Status AddLease(const std::string& worker, const std::string& caller,
                        v1::SynchronizeResponse& response);
  // The scheduler's tokens of the leases that the worker lists; 0 for one that is not this
  // caller's.
  std::vector<Token> TokensOf(const v1::SynchronizeRequest& request,
                              const std::string& caller) const;
  absl::StatusOr<v1::Lease> MakeLease(Token token, const std::vector<TrialKey>& trials,
                                      absl::string_view caller);
  // State of trials about to be leased.
  enum class Found {
    kUsable,
    // Something is lost: the trials were changed, and another pack may be next.
    kChanged,
    // Something cannot be read now: the trials wait a while, and another pack may be next.
    kUnreadable,
  };
  // Makes sure that the pack's specification can be read; otherwise its trials fail.
  absl::StatusOr<Found> CheckSpecification(const std::vector<TrialKey>& pack);
  // Makes sure that the trial's checkpoint can be used. If it is lost, the trial falls back to the
  // previous one, or to the start, and its history says so. A trial that only evaluates cannot
  // start again, and fails.
  absl::StatusOr<Found> CheckCheckpoint(int64_t trial);

  const absl::Duration lease_duration_;
  const absl::Duration heartbeat_interval_;
  Ledger& ledger_;
  StorageWriter& store_;
  ArtifactStore& artifacts_;
  Fleet& fleet_;
  const LeaseIds& ids_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEASES_H_
