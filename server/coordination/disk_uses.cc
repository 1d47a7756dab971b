#include "server/coordination/disk_uses.h"

#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

constexpr size_t kMostKnown = 10'000;

}  // namespace

absl::StatusOr<v1::DiskUse> DiskUses::Measure(StorageReader& reader,
                                              const ExperimentRecord& experiment) {
  v1::DiskUse use;
  ASSIGN_OR_RETURN(const ArtifactUsage artifacts, artifacts_.Usage(experiment.id));
  use.set_artifact_bytes(artifacts.bytes);
  use.set_artifacts(artifacts.artifacts);

  Known known;
  {
    platform::MutexLock lock(mutex_);
    if (const auto found = known_.find(experiment.key); found != known_.end()) {
      known = found->second;
    }
  }
  // A position is never used again, so an equal count means the same events.
  ASSIGN_OR_RETURN(const int64_t still, reader.CountEvents(experiment.key, 0, known.position));
  if (still != known.events) known = Known();
  ASSIGN_OR_RETURN(const int64_t last, reader.LastPosition());
  ASSIGN_OR_RETURN(const int64_t events,
                   reader.CountEvents(experiment.key, known.position + 1, last));
  if (events > 0) {
    ASSIGN_OR_RETURN(const int64_t bytes,
                     reader.EventBytes(experiment.key, known.position + 1, last));
    known = {.position = last, .events = known.events + events, .bytes = known.bytes + bytes};
  }
  use.set_events(known.events);
  use.set_event_bytes(known.bytes);
  platform::MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_[experiment.key] = known;
  return use;
}

}  // namespace lengthwise::server
