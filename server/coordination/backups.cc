#include "server/coordination/backups.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"
#include "server/storage/backup.h"

namespace lengthwise::server {
namespace {

constexpr char kDefaultName[] = "%Y-%m-%dt%H%M%Sz";

}  // namespace

Backups::Backups(std::string data_dir, Clock clock, Storage& storage, ArtifactStore& artifacts,
                 const DiskReserve& reserve, ArtifactSweeper& sweeper, Usage& usage)
    : data_dir_(std::move(data_dir)),
      clock_(std::move(clock)),
      storage_(storage),
      artifacts_(artifacts),
      reserve_(reserve),
      sweeper_(sweeper),
      usage_(usage) {
  for (const v1::Backup& backup : ListBackups(data_dir_).value_or(std::vector<v1::Backup>())) {
    last_.time = std::max(last_.time, ToTime(backup.create_time()));
  }
}

Backups::Last Backups::last() const {
  platform::MutexLock lock(mutex_);
  return last_;
}

void Backups::DeleteOld(const std::string& made, int32_t keep, v1::BackUpResponse& response) {
  std::vector<std::string> names;  // of the older ones, in the order of their times
  for (const v1::Backup& backup : ListBackups(data_dir_).value_or(std::vector<v1::Backup>())) {
    absl::Time time;
    // Only names that the server makes: ParseTime also takes "2026-1-1t000000z" and
    // "infinite-future".
    if (backup.name() != made && absl::ParseTime(kDefaultName, backup.name(), &time, nullptr) &&
        time > absl::InfinitePast() && time < absl::InfiniteFuture() &&
        absl::FormatTime(kDefaultName, time, absl::UTCTimeZone()) == backup.name()) {
      names.push_back(backup.name());
    }
  }
  for (size_t i = 0; i + static_cast<size_t>(keep) < names.size() + 1; ++i) {
    const absl::Status deleted = DeleteBackup(data_dir_, names[i]);
    if (deleted.ok()) {
      response.add_deleted(names[i]);
    } else {
      platform::LogWarning("cannot delete the backup ", names[i], ": ", deleted.message());
    }
  }
}

absl::Status Backups::BackUp(const v1::BackUpRequest& request,
                             const std::function<bool(const v1::BackUpResponse&)>& progress) {
  if (request.keep() < 0 || (request.keep() > 0 && !request.name().empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("keep: got ", request.keep(), request.name().empty() ? "" : " beside a name",
                     ", accepted is 0 or more, and only for a backup without a name of its own"));
  }
  const std::string name = request.name().empty()
                               ? absl::FormatTime(kDefaultName, clock_.wall(), absl::UTCTimeZone())
                               : request.name();
  // The name becomes a directory: it has no slash, and no dot in front, which marks unfinished
  // backups.
  const bool first = absl::ascii_isalnum(name.front()) && !absl::ascii_isupper(name.front());
  const bool others = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '_' || c == '-';
  });
  if (!first || !others || name.size() > 60) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name: got \"", name, "\", accepted is [a-z0-9][a-z0-9._-]*, at most 60 characters"));
  }
  // Before the database is copied, so that the files that the copy names are still there to link.
  if (!sweeper_.Pause()) {
    return absl::AbortedError("another backup is being made; try again when it is done");
  }
  v1::BackUpResponse response;
  const absl::StatusOr<std::string> path = [&]() -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(reserve_.room());
    return MakeBackup(data_dir_, name, artifacts_, [&](int64_t copied_bytes, int64_t total_bytes) {
      response.set_copied_bytes(copied_bytes);
      response.set_total_bytes(total_bytes);
      return progress(response);
    });
  }();
  sweeper_.Resume();
  // Otherwise backups that follow each other could put the deletions off for ever.
  sweeper_.Flush();
  {
    platform::MutexLock lock(mutex_);
    last_.failed = !path.ok();
    if (path.ok()) last_.time = clock_.wall();
  }
  if (!path.ok()) {
    platform::LogWarning("no backup ", name, ": ", path.status().message());
    return path.status();
  }
  platform::LogInfo("made the backup ", *path);
  if (request.keep() > 0) DeleteOld(name, request.keep(), response);
  response.set_complete(true);
  response.set_path(*path);
  response.set_checkpoints_elsewhere(artifacts_.elsewhere());
  progress(response);
  return absl::OkStatus();
}

absl::StatusOr<v1::Storage> Backups::GetStorage() {
  v1::Storage storage;
  storage.set_data_dir(data_dir_);
  storage.set_database_bytes(storage_.SizeBytes());
  ASSIGN_OR_RETURN(const ArtifactUsage artifacts, artifacts_.Usage());
  storage.set_artifact_bytes(artifacts.bytes);
  storage.set_artifacts(artifacts.artifacts);
  ASSIGN_OR_RETURN(const platform::DiskSpace disk, platform::GetDiskSpace(data_dir_));
  storage.set_free_bytes(disk.free_bytes);
  storage.set_checkpoints_elsewhere(artifacts_.elsewhere());
  if (const auto elsewhere = MeasureDiskElsewhere(artifacts_.elsewhere())) {
    storage.set_elsewhere_free_bytes(elsewhere->free_bytes);
  }
  ASSIGN_OR_RETURN(const auto backups, ListBackups(data_dir_));
  storage.mutable_backups()->Add(backups.begin(), backups.end());
  ASSIGN_OR_RETURN(const auto owners, usage_.Owners(absl::ZeroDuration()));
  storage.mutable_usage()->Add(owners.begin(), owners.end());
  return storage;
}

}  // namespace lengthwise::server
