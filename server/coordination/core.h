// The core of the server: its parts, each with one responsibility, on one data directory.
//
//   rpc handlers --commands--> loop() --> submissions(), experiments(), leases(), intake()
//                                              \--> Ledger: scheduler + store, one transaction
//                --reads-----> reads(), event_log(), artifacts(), backups(): callers' threads
//
// Every change of state goes through the loop's thread. After each commit the core publishes its
// effects: statistics, summaries, watchers, deletions.
#ifndef LENGTHWISE_SERVER_COORDINATION_CORE_H_
#define LENGTHWISE_SERVER_COORDINATION_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "server/coordination/artifacts.h"
#include "server/coordination/backups.h"
#include "server/coordination/command_loop.h"
#include "server/coordination/core_options.h"
#include "server/coordination/engine.h"
#include "server/coordination/event_log.h"
#include "server/coordination/fleet.h"
#include "server/coordination/held_heartbeats.h"
#include "server/coordination/lease_waiters.h"
#include "server/coordination/reads.h"
#include "server/coordination/running_trials.h"
#include "server/coordination/statistics.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Thread-safe.
class Core {
 public:
  struct Dependencies {
    GridResolver resolve;
    Clock clock = SystemClock();
    // Largest size of the database, bytes; 0: no limit.
    int64_t max_database_bytes = 0;
    // As in CommandLoop::Options.
    int64_t max_queued_bytes = 256 << 20;
    // As in SqliteOptions. Empty: its default.
    std::function<void(const absl::Status&)> on_failed_sync;
    // For tests: puts another storage in front of the opened one.
    std::function<std::unique_ptr<Storage>(std::unique_ptr<Storage>)> wrap_storage;
  };

  // Opens the data directory and goes on where the last server stopped: leases that were alive keep
  // their workers, with a full lease duration from now. FAILED_PRECONDITION when another server has
  // the directory open, or a backup is to go where something is; DATA_LOSS for a damaged database
  // or backup.
  static absl::StatusOr<std::unique_ptr<Core>> Open(const CoreOptions& options,
                                                    Dependencies dependencies);
  // With the resolver of specifications and the machine's clock.
  static absl::StatusOr<std::unique_ptr<Core>> Open(const CoreOptions& options);
  ~Core() { Stop(); }

  // Applies the commands that are queued, refuses what comes after. Reads go on.
  void Stop() { loop_.Stop(); }

  CommandLoop& loop() { return loop_; }
  // To be called by commands on the loop; Submissions' Prepare functions on any thread.
  Submissions& submissions() { return engine_.submissions; }
  Experiments& experiments() { return engine_.experiments; }
  Leases& leases() { return engine_.leases; }
  EventIntake& intake() { return engine_.events; }
  // On any thread.
  const LeaseIds& lease_ids() const { return engine_.lease_ids; }
  // On callers' threads.
  EventLog& event_log() { return event_log_; }
  Artifacts& artifacts() { return artifacts_; }
  Reads& reads() { return reads_; }
  Backups& backups() { return backups_; }
  Statistics GetStatistics();
  // Workers whose AcquireLease waits.
  int64_t waiting_workers() const { return waiters_.waiting(); }
  // Heartbeats whose answers are held.
  int64_t held_heartbeats() const { return heartbeats_.held(); }

 private:
  Core(const CoreOptions& options, Dependencies dependencies,
       std::unique_ptr<platform::FileLock> lock, std::unique_ptr<Storage> storage,
       std::unique_ptr<ArtifactStore> artifact_store);

  // On the loop's thread.
  void Publish(CommittedGroup group);
  // Deletes the artifacts of a deleted experiment, in parts.
  void DeleteArtifacts(const std::string& experiment);
  // Calls DeleteArtifacts between other commands. The next commit takes up what a failing store
  // refuses, and the next start what a server that stops refuses. From any thread before the loop
  // starts, then on the loop's thread.
  void PostDeletion(const std::string& experiment);
  void CommitFailed();

  const CoreOptions options_;
  const Clock clock_;
  const std::unique_ptr<platform::FileLock> lock_;
  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<ArtifactStore> artifact_store_;
  Fleet fleet_;
  RunningTrials running_trials_;
  Engine engine_;
  LeaseWaiters waiters_;
  HeldHeartbeats heartbeats_;
  // Deleted experiments of which files are left, after a failure. Of the loop's thread alone.
  std::vector<std::string> refused_;
  CommandLoop loop_;
  EventLog event_log_;
  Artifacts artifacts_;
  Reads reads_;
  Backups backups_;

  platform::Mutex statistics_mutex_;
  // What is counted with every commit; the rest is filled in by GetStatistics.
  Statistics statistics_ ABSL_GUARDED_BY(statistics_mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_CORE_H_
