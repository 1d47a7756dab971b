// ArtifactSweeper: deletes artifacts that are no longer needed, on a thread of its own. What makes
// them so inserts a record in its transaction (SweepRecord), so no crash, failed store or backup
// loses a deletion.
#ifndef LENGTHWISE_SERVER_COORDINATION_ARTIFACT_SWEEPER_H_
#define LENGTHWISE_SERVER_COORDINATION_ARTIFACT_SWEEPER_H_

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "platform/mutex.h"
#include "server/coordination/command_loop.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Thread-safe.
class ArtifactSweeper {
 public:
  // All references must outlive it.
  ArtifactSweeper(Storage& storage, ArtifactStore& artifacts, CommandLoop& loop)
      : storage_(storage), artifacts_(artifacts), loop_(loop) {}
  ~ArtifactSweeper() { Stop(); }

  void Start();
  // Returns when the deletion in progress has ended. The next start of a server does the rest.
  void Stop();

  // From now until Resume nothing is deleted: a backup links the artifacts of the state that it
  // copies. Waits for the deletion in progress. False if it is paused already.
  bool Pause();
  void Resume();
  // Looks at the records now, or at the first thousand of them, and waits until it has done so.
  // Returns at once while it is paused.
  void Flush();

 private:
  using Time = std::chrono::steady_clock::time_point;

  void Run();
  // Looks at a page of records, and ends soon after `until`. True if there is more to do at once.
  bool Pass(Time until);
  // The keys of the records that need no further look.
  std::vector<int64_t> SweepAll(const std::vector<SweepRecord>& sweeps, Time until);
  bool MayContinue(Time until);
  // Deletes records, in a transaction of the loop. Waits for it.
  void Forget(const std::vector<int64_t>& keys);

  Storage& storage_;
  ArtifactStore& artifacts_;
  CommandLoop& loop_;
  // Used by the thread only: the key of the last record it looked at.
  int64_t after_ = 0;
  bool failed_ = false;  // the newest deletion

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Passes that Flush asked for, and those of them that have been made.
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t made_ ABSL_GUARDED_BY(mutex_) = 0;

  platform::Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_ARTIFACT_SWEEPER_H_
