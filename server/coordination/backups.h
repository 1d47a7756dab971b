// Backups of the running server, and the state of its disk.
#ifndef LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_
#define LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/mutex.h"
#include "proto/administration_service.pb.h"
#include "server/coordination/command_loop.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Actions that can be deferred while a backup needs files to stay. An action may run long after it
// was created, so it must look up the state it acts on when it runs. Thread-safe.
class DeferredActions {
 public:
  // Runs the action now, or keeps it if called between Hold and Release.
  void Run(std::function<void()> action) {
    {
      platform::MutexLock lock(mutex_);
      if (held_) {
        waiting_.push_back(std::move(action));
        return;
      }
    }
    action();
  }

  // False if it is held already.
  bool Hold() {
    platform::MutexLock lock(mutex_);
    return !std::exchange(held_, true);
  }
  // Returns the deferred actions. The caller must pass each of them to Run again.
  [[nodiscard]] std::vector<std::function<void()>> Release() {
    platform::MutexLock lock(mutex_);
    held_ = false;
    return std::exchange(waiting_, {});
  }

 private:
  platform::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe. Blocks on the caller's thread, reading and writing the disk.
class Backups {
 public:
  // All references must outlive it.
  Backups(std::string data_dir, Clock clock, Storage& storage, ArtifactStore& artifacts,
          CommandLoop& loop);

  // Copies the database and the artifacts to "{data_dir}/backups/{name}" while the server keeps
  // working. Calls `progress` on the caller's thread, the last time with `complete`. If `progress`
  // returns false, BackUp leaves no files and returns CANCELLED.
  absl::Status BackUp(const v1::BackUpRequest& request,
                      const std::function<bool(const v1::BackUpResponse&)>& progress);
  absl::StatusOr<v1::Storage> GetStorage();

  // Runs an action that deletes artifacts after a commit. During a backup the action is deferred
  // until the backup is done, because the backup links the artifacts of the state that it copies.
  void Delete(std::function<void()> deletion) { deletions_.Run(std::move(deletion)); }
  // Deferred deletions that could not run after their backup, because the store failed. The caller
  // must pass each of them to Delete after the next commit.
  [[nodiscard]] std::vector<std::function<void()>> TakeRefused();

 private:
  const std::string data_dir_;
  const Clock clock_;
  Storage& storage_;
  ArtifactStore& artifacts_;
  CommandLoop& loop_;
  DeferredActions deletions_;
  platform::Mutex mutex_;
  std::vector<std::function<void()>> refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_
