// DiskUses: disk space that experiments occupy.
#ifndef LENGTHWISE_SERVER_COORDINATION_DISK_USES_H_
#define LENGTHWISE_SERVER_COORDINATION_DISK_USES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "platform/mutex.h"
#include "proto/experiment_service.pb.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Reads the payloads of an experiment's events once, later only those of new events, unless events
// were deleted in between. Thread-safe.
class DiskUses {
 public:
  // `artifacts` must outlive it.
  explicit DiskUses(const ArtifactStore& artifacts) : artifacts_(artifacts) {}

  absl::StatusOr<v1::DiskUse> Measure(StorageReader& reader, const ExperimentRecord& experiment);

 private:
  // Totals of the events up to `position`.
  struct Known {
    int64_t position = 0;
    int64_t events = 0;
    int64_t bytes = 0;
  };

  const ArtifactStore& artifacts_;
  platform::Mutex mutex_;
  absl::flat_hash_map<int64_t, Known> known_ ABSL_GUARDED_BY(mutex_);  // by experiment key
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_DISK_USES_H_
