// Backups of the running server, and the state of its disk.
#ifndef LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_
#define LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "proto/administration_service.pb.h"
#include "server/coordination/artifact_sweeper.h"
#include "server/coordination/ledger.h"
#include "server/coordination/usage.h"
#include "server/storage/artifact_store.h"
#include "server/storage/disk_reserve.h"
#include "server/storage/records.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Thread-safe. Blocks on the caller's thread, reading and writing the disk.
class Backups {
 public:
  // All references must outlive it.
  Backups(std::string data_dir, Clock clock, Storage& storage, ArtifactStore& artifacts,
          const DiskReserve& reserve, ArtifactSweeper& sweeper, Usage& usage);

  // Copies the database and the artifacts to "{data_dir}/backups/{name}" while the server keeps
  // working. Calls `progress` on the caller's thread, the last time with `complete`. If `progress`
  // returns false, BackUp leaves no files and returns CANCELLED. A backup that is complete stays,
  // and is a success, although older ones could not be deleted.
  absl::Status BackUp(const v1::BackUpRequest& request,
                      const std::function<bool(const v1::BackUpResponse&)>& progress);
  absl::StatusOr<v1::Storage> GetStorage();

  struct Last {
    // Of the newest complete backup: made by this process, or in the directory when it started.
    // NoTime() if there is none.
    absl::Time time = NoTime();
    // The newest attempt of this process failed.
    bool failed = false;
  };
  Last last() const;

 private:
  // Deletes backups with default names, oldest first, until `keep` are left.
  void DeleteOld(const std::string& made, int32_t keep, v1::BackUpResponse& response);

  const std::string data_dir_;
  const Clock clock_;
  Storage& storage_;
  ArtifactStore& artifacts_;
  const DiskReserve& reserve_;
  ArtifactSweeper& sweeper_;
  Usage& usage_;
  mutable platform::Mutex mutex_;
  Last last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_
