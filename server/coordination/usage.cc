#include "server/coordination/usage.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Maximum number of experiments whose totals are kept, to bound the memory.
constexpr size_t kMostKnown = 10'000;
// Of owners' experiments that have ended: measuring them all takes a look at each file.
constexpr absl::Duration kMaxAge = absl::Hours(1);

}  // namespace

absl::StatusOr<v1::DiskUse> Usage::Measure(StorageReader& reader,
                                           const ExperimentRecord& experiment,
                                           absl::Duration max_age) {
  Known known;
  {
    platform::MutexLock lock(mutex_);
    if (const auto found = known_.find(experiment.key); found != known_.end()) {
      known = found->second;
      if (known.end_time != NoTime() && known.end_time == experiment.end_time &&
          clock_.steady() - known.measured < max_age) {
        return known.use;
      }
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
    known.position = last;
    known.events += events;
    known.use.set_event_bytes(known.use.event_bytes() + bytes);
  }
  known.use.set_events(known.events);
  ASSIGN_OR_RETURN(const ArtifactUsage artifacts, artifacts_.Usage(experiment.id));
  known.use.set_artifact_bytes(artifacts.bytes);
  known.use.set_artifacts(artifacts.artifacts);
  known.end_time = experiment.end_time;
  known.measured = clock_.steady();
  platform::MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_[experiment.key] = known;
  return known.use;
}

absl::StatusOr<std::vector<v1::OwnerUsage>> Usage::MeasureOwners(const std::string& owner) {
  std::map<std::string, v1::OwnerUsage> owners;
  for (int64_t before = 0;;) {
    // One for each page, because it pins a snapshot of the database.
    ASSIGN_OR_RETURN(const auto reader, storage_.Read());
    if (before == 0) {
      ASSIGN_OR_RETURN(std::vector<v1::OwnerUsage> used, reader->ListUsage(clock_.wall()));
      for (v1::OwnerUsage& one : used) {
        if (owner.empty() || one.owner() == owner) owners[one.owner()] = std::move(one);
      }
    }
    ASSIGN_OR_RETURN(const auto page, reader->ListExperiments(before, owner, kExperimentsAtOnce));
    for (const ExperimentRecord& experiment : page) {
      if (interrupted_) return absl::UnavailableError("the server is stopping");
      ASSIGN_OR_RETURN(const v1::DiskUse use, Measure(*reader, experiment, kMaxAge));
      v1::OwnerUsage& one = owners[experiment.owner];
      one.set_owner(experiment.owner);
      one.set_experiments(one.experiments() + 1);
      one.set_bytes(one.bytes() + use.artifact_bytes() + use.event_bytes());
    }
    if (page.size() < kExperimentsAtOnce) break;
    before = page.back().key;
  }
  std::vector<v1::OwnerUsage> sorted;
  for (auto& [name, one] : owners) sorted.push_back(std::move(one));
  return sorted;
}

absl::StatusOr<std::vector<v1::OwnerUsage>> Usage::Owners(absl::Duration max_age) {
  const auto known = [&]() -> std::optional<std::vector<v1::OwnerUsage>> {
    platform::MutexLock lock(mutex_);
    if (clock_.steady() - measured_ >= max_age) return std::nullopt;
    return owners_;
  };
  if (auto owners = known()) return *std::move(owners);
  platform::MutexLock alone(measuring_);
  if (auto owners = known()) return *std::move(owners);
  ASSIGN_OR_RETURN(std::vector<v1::OwnerUsage> owners, MeasureOwners(""));
  platform::MutexLock lock(mutex_);
  owners_ = owners;
  measured_ = clock_.steady();
  return owners;
}

absl::Status Usage::CheckBytes(const std::string& owner, int64_t added) {
  if (max_owner_bytes_ <= 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<v1::OwnerUsage> owners, MeasureOwners(owner));
  const int64_t used = owners.empty() ? 0 : owners.front().bytes();
  if (used + added <= max_owner_bytes_ && used < max_owner_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the experiments of ", owner, " use ", used, " bytes of the server's disk",
      added > 0 ? absl::StrCat(", and ", added, " more would pass") : ", which reaches",
      " the limit of ", max_owner_bytes_,
      "; delete some (`lengthwise list --usage` and `lengthwise show EXPERIMENT` tell their "
      "sizes, `lengthwise delete --owner ",
      owner,
      " --older_than 30d` deletes old ones), or have the server's --max_owner_bytes raised"));
}

}  // namespace lengthwise::server
