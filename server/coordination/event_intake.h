// EventIntake: stores workers' events. Each event is stored at most once, and only from the trial's
// newest lease.
#ifndef LENGTHWISE_SERVER_COORDINATION_EVENT_INTAKE_H_
#define LENGTHWISE_SERVER_COORDINATION_EVENT_INTAKE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/event_checks.h"
#include "server/coordination/leases.h"
#include "server/coordination/ledger.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Largest checkpoint that is verified when its event arrives, in bytes. Verification holds the
// command loop, so larger checkpoints are verified later, on download.
inline constexpr int64_t kMostBytesToCheck = int64_t{64} << 20;

// Not thread-safe: belongs to the command loop.
class EventIntake {
 public:
  // All references must outlive it.
  EventIntake(Ledger& ledger, ArtifactStore& artifacts, const LeaseIds& lease_ids);

  // Stores each trial's part of the batch by itself. Refusals are part of the response; an error
  // means that the store or the artifacts cannot be read or written, and parts before it may be
  // stored. `caller` must be the principal that acquired the lease.
  absl::StatusOr<v1::StreamEventsResponse> Store(const v1::StreamEventsRequest& request,
                                                 const std::string& caller);

 private:
  absl::StatusOr<v1::StreamEventsResponse> StorePart(const v1::StreamEventsRequest& request,
                                                     Events events, const std::string& caller);
  // Returns why the attempt may not send these checkpoints or this outcome; empty if it may.
  static std::string ModelProblem(const TrialRecord& trial, Events events, int64_t last_sequence);
  // Returns why the attempt may not send these log lines; empty if it may.
  absl::StatusOr<std::string> LogProblem(const TrialRecord& trial, Events events,
                                         int64_t last_sequence);
  // `behind`: how much later it is by the server's clock than by the worker's.
  absl::Status StoreNew(TrialRecord& trial, Events events, int64_t last_sequence,
                        absl::Duration behind);

  Ledger& ledger_;
  StorageWriter& store_;
  ArtifactStore& artifacts_;
  const LeaseIds& lease_ids_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EVENT_INTAKE_H_
