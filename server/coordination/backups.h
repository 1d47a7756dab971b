// Keeping the server: backups while it works, and what is on its disk.
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

// Actions that wait while somebody needs things as they are. What they do they look up when they
// run, which may be long after they were meant. Thread-safe.
class DeferredActions {
 public:
  // Runs the action now or, between Hold and Release, keeps it.
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

  // False when it is held already.
  bool Hold() {
    platform::MutexLock lock(mutex_);
    return !std::exchange(held_, true);
  }
  // Gives what was kept to the caller, who sees to it that each is given to Run again.
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

// Thread-safe; blocks, and reads and writes the disk, on the caller's thread.
class Backups {
 public:
  // All must outlive it.
  Backups(std::string data_dir, Clock clock, Storage& storage, ArtifactStore& artifacts,
          CommandLoop& loop);

  // Copies database and artifacts to "{data_dir}/backups/{name}" while the server works on; tells
  // `progress`, last with `complete`, on the caller's thread. Stops with CANCELLED, leaving
  // nothing, when it returns false.
  absl::Status BackUp(const v1::BackUpRequest& request,
                      const std::function<bool(const v1::BackUpResponse&)>& progress);
  absl::StatusOr<v1::Storage> GetStorage();

  // Runs what deletes artifacts after a commit: now, or when a backup that is being made is done,
  // because it links the artifacts of the state that it copies.
  void Delete(std::function<void()> deletion) { deletions_.Run(std::move(deletion)); }

 private:
  const std::string data_dir_;
  const Clock clock_;
  Storage& storage_;
  ArtifactStore& artifacts_;
  CommandLoop& loop_;
  DeferredActions deletions_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_BACKUPS_H_
