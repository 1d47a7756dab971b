// The coordinator's part in keeping the server.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/bulk_files.h"
#include "platform/status_macros.h"
#include "server/coordination/coordinator_impl.h"
#include "server/storage/artifact_usage.h"
#include "server/storage/backup.h"

namespace lengthwise::server {

absl::Status CoordinatorImpl::BackUp(
    const v1::BackUpRequest& request,
    const std::function<bool(const v1::BackUpResponse&)>& progress) {
  const std::string name =
      request.name().empty()
          ? absl::FormatTime("%Y-%m-%dt%H%M%Sz", dependencies_.clock.wall(), absl::UTCTimeZone())
          : request.name();
  const bool first = absl::ascii_isalnum(name.front()) && !absl::ascii_isupper(name.front());
  const bool others = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '_' || c == '-';
  });
  if (!first || !others || name.size() > 60) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name: got \"", name, "\", accepted is [a-z0-9][a-z0-9._-]*, at most 60 characters"));
  }
  if (!deletions_.Hold()) {
    return absl::AbortedError("another backup is being made; try again when it is done");
  }
  v1::BackUpResponse response;
  const absl::StatusOr<std::string> path = MakeBackup(
      options_.data_dir, name, *artifacts_, [&](int64_t copied_bytes, int64_t total_bytes) {
        response.set_copied_bytes(copied_bytes);
        response.set_total_bytes(total_bytes);
        return progress(response);
      });
  // On the coordinator's thread, as without a backup: beside it a trial could begin anew, and
  // upload what is about to be deleted, while this looks at what the store says of it. What a
  // server that stops refuses, the next start does.
  for (std::function<void()>& deletion : deletions_.Release()) {
    PostCommand({.apply = [this, deletion = std::move(deletion)]() -> Answer {
                   deletions_.Run(deletion);
                   return nullptr;
                 },
                 .fail = [](const absl::Status&) {}});
  }
  Flush();
  if (!path.ok()) return path.status();
  response.set_complete(true);
  response.set_path(*path);
  progress(response);
  return absl::OkStatus();
}

absl::StatusOr<v1::Storage> CoordinatorImpl::GetStorage() {
  v1::Storage storage;
  storage.set_data_dir(options_.data_dir);
  storage.set_database_bytes(storage_->SizeBytes());
  ASSIGN_OR_RETURN(const ArtifactUsage artifacts,
                   MeasureArtifacts(absl::StrCat(options_.data_dir, "/", kArtifactsDirectory)));
  storage.set_artifact_bytes(artifacts.bytes);
  storage.set_artifacts(artifacts.artifacts);
  ASSIGN_OR_RETURN(const int64_t free, platform::FreeBytes(options_.data_dir));
  storage.set_free_bytes(free);
  ASSIGN_OR_RETURN(const auto backups, ListBackups(options_.data_dir));
  for (const BackupDescription& backup : backups) {
    v1::Backup& described = *storage.add_backups();
    described.set_name(backup.name);
    *described.mutable_create_time() = google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
        absl::ToUnixMicros(backup.create_time));
    described.set_bytes(backup.bytes);
  }
  return storage;
}

}  // namespace lengthwise::server
