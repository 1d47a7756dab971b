// Usage: the disk space that experiments occupy, what their owners have used, and the limit of an
// owner's disk space.
#ifndef LENGTHWISE_SERVER_COORDINATION_USAGE_H_
#define LENGTHWISE_SERVER_COORDINATION_USAGE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "proto/experiment_service.pb.h"
#include "server/coordination/ledger.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Reads the payloads of an experiment's events once, later only those of new events, unless events
// were deleted in between. Thread-safe. Blocks on the store, on the caller's thread.
class Usage {
 public:
  // The references must outlive it. `max_owner_bytes` is the maximum disk use of one owner's
  // experiments; 0: no limit.
  Usage(Storage& storage, const ArtifactStore& artifacts, Clock clock, int64_t max_owner_bytes)
      : storage_(storage),
        artifacts_(artifacts),
        clock_(std::move(clock)),
        max_owner_bytes_(max_owner_bytes) {}

  // The disk use of an experiment that has ended may be as old as `max_age`.
  absl::StatusOr<v1::DiskUse> Measure(StorageReader& reader, const ExperimentRecord& experiment,
                                      absl::Duration max_age = absl::ZeroDuration());
  // What all owners have used, by owner, measured less than `max_age` ago.
  absl::StatusOr<std::vector<v1::OwnerUsage>> Owners(absl::Duration max_age);
  // The result of the last measurement of all owners. Empty before the first.
  std::vector<v1::OwnerUsage> LastOwners() {
    platform::MutexLock lock(mutex_);
    return owners_;
  }
  // RESOURCE_EXHAUSTED if the owner's experiments have all the bytes that they may have, or would
  // have more with `added` more bytes.
  absl::Status CheckBytes(const std::string& owner, int64_t added);
  // Ends measurements of owners soon, and later ones, with UNAVAILABLE.
  void Interrupt() { interrupted_ = true; }

 private:
  struct Known {
    // Totals of the events up to `position`.
    int64_t position = 0;
    int64_t events = 0;
    v1::DiskUse use;
    // When the experiment had ended, and when `use` was measured.
    absl::Time end_time = NoTime();
    absl::Time measured;
  };

  // By owner, those of `owner` or all.
  absl::StatusOr<std::vector<v1::OwnerUsage>> MeasureOwners(const std::string& owner);

  Storage& storage_;
  const ArtifactStore& artifacts_;
  const Clock clock_;
  const int64_t max_owner_bytes_;
  std::atomic<bool> interrupted_ = false;
  // Held during a measurement of all owners, so that there is one at a time.
  platform::Mutex measuring_;
  platform::Mutex mutex_;
  absl::flat_hash_map<int64_t, Known> known_ ABSL_GUARDED_BY(mutex_);  // by experiment key
  std::vector<v1::OwnerUsage> owners_ ABSL_GUARDED_BY(mutex_);
  absl::Time measured_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_USAGE_H_
