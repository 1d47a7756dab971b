#include "server/coordination/disk_uses.h"

#include "absl/strings/str_cat.h"
#include "server/storage/artifact_usage.h"

namespace lengthwise::server {
namespace {

constexpr size_t kMostKnown = 10'000;

}  // namespace

absl::StatusOr<v1::DiskUse> DiskUses::Measure(StorageReader& reader,
                                              const ExperimentRecord& experiment) {
  v1::DiskUse use;
  const absl::StatusOr<ArtifactUsage> artifacts =
      MeasureArtifacts(absl::StrCat(artifacts_, "/", experiment.id));
  if (!artifacts.ok()) return artifacts.status();
  use.set_artifact_bytes(artifacts->bytes);
  use.set_artifacts(artifacts->artifacts);

  Known known;
  {
    platform::MutexLock lock(mutex_);
    if (const auto found = known_.find(experiment.key); found != known_.end()) {
      known = found->second;
    }
  }
  // Positions are never given twice, so an equal number means the same events.
  const absl::StatusOr<int64_t> still = reader.CountEvents(experiment.key, 0, known.position);
  if (!still.ok()) return still.status();
  if (*still != known.events) known = Known();
  const absl::StatusOr<int64_t> last = reader.LastPosition();
  if (!last.ok()) return last.status();
  const absl::StatusOr<int64_t> events =
      reader.CountEvents(experiment.key, known.position + 1, *last);
  if (!events.ok()) return events.status();
  if (*events > 0) {
    const absl::StatusOr<int64_t> bytes =
        reader.EventBytes(experiment.key, known.position + 1, *last);
    if (!bytes.ok()) return bytes.status();
    known = {.position = *last, .events = known.events + *events, .bytes = known.bytes + *bytes};
  }
  use.set_events(known.events);
  use.set_event_bytes(known.bytes);
  platform::MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_[experiment.key] = known;
  return use;
}

}  // namespace lengthwise::server
