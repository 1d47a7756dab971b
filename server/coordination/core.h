// Core: the server's state on one data directory, assembled from parts with one responsibility
// each.
//
//   rpc handlers --commands--> loop() --> submissions(), experiments(), intake(), Leases
//                                              \--> Ledger: scheduler + store, one transaction
//                --reads-----> reads(), event_log(), artifacts(), backups(): callers' threads
//
// Only the loop's thread changes state. After each commit the core publishes its effects:
// statistics, summaries, watchers. The sweeper deletes artifacts on a thread of its own.
#ifndef LENGTHWISE_SERVER_COORDINATION_CORE_H_
#define LENGTHWISE_SERVER_COORDINATION_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "proto/access_service.pb.h"
#include "server/coordination/artifact_sweeper.h"
#include "server/coordination/artifacts.h"
#include "server/coordination/backups.h"
#include "server/coordination/command_loop.h"
#include "server/coordination/engine.h"
#include "server/coordination/event_log.h"
#include "server/coordination/fleet.h"
#include "server/coordination/reads.h"
#include "server/coordination/running_trials.h"
#include "server/coordination/statistics.h"
#include "server/coordination/usage.h"
#include "server/coordination/waiting_calls.h"
#include "server/storage/artifact_store.h"
#include "server/storage/disk_reserve.h"
#include "server/storage/s3_presign.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Settings of a server that its operator chooses.
struct CoreOptions : Engine::Options {
  // Directory of the database and the artifacts. Created if missing.
  std::string data_dir;
  // Place of the checkpoints: a directory on a shared file system (server/storage/shared_store.h)
  // or "s3://bucket/prefix" (server/storage/s3_artifact_store.h). Empty: "artifacts" in data_dir.
  std::string artifacts;
  S3Options s3;
  // Makes `artifacts` this data directory's, although its mark says otherwise.
  bool take_over_artifacts = false;
  // Directory of a backup to restore into data_dir before opening it; data_dir must be missing or
  // empty. Empty: no restore.
  std::string restore_from;
  // Ends at once the leases of an earlier server on the directory, whose workers must have ended.
  bool release_leases = false;
  // Maximum number of trials in one experiment.
  int64_t max_trials = 100'000;
  // Maximum size of an experiment's packs, which have copies of its training and evaluation.
  int64_t max_grid_bytes = int64_t{64} << 20;
  // Disk use of one owner's experiments in bytes from which nothing more is accepted. 0: no limit.
  int64_t max_owner_bytes = 0;
  // How long checkpoints and maps stay after an experiment's end, unless its specification says so.
  // 0: for ever.
  absl::Duration retention;
  // Maximum size of an artifact in bytes.
  int64_t max_artifact_bytes = int64_t{8} << 30;
  // Maximum size of a file of examples in bytes.
  int64_t max_data_bytes = int64_t{1} << 30;
  // Space that is kept for deletions on a full disk, in bytes. 0: none.
  int64_t reserve_bytes = 0;
  // Accepts experiments with users' PyTorch modules, whose code workers run.
  bool allow_python_networks = false;
  // Who may submit them, beside administrators.
  v1::Role python_networks_from = v1::SUBMITTER;
};

// Thread-safe.
class Core {
 public:
  struct Dependencies {
    GridResolver resolve;
    Clock clock = SystemClock();
    // Maximum size of the database in bytes. 0: no limit.
    int64_t max_database_bytes = 0;
    // As in CommandLoop::Options.
    int64_t max_queued_bytes = 256 << 20;
    // As in SqliteOptions. Null: the default there.
    std::function<void(const absl::Status&)> on_lost;
    // Free space of a directory.
    DiskReserve::Measure measure_disk = platform::GetDiskSpace;
    // For tests: wraps the opened storage.
    std::function<std::unique_ptr<Storage>(std::unique_ptr<Storage>)> wrap_storage;
  };

  // Opens the data directory and continues where the last server stopped. Leases that were alive
  // keep their workers and get a full lease duration from now, unless options.release_leases.
  // FAILED_PRECONDITION if another server has the directory open, if it is a backup, if the
  // directory of checkpoints is not mounted or belongs to another server, or if a backup would be
  // restored over existing data. DATA_LOSS for a damaged database or backup.
  static absl::StatusOr<std::unique_ptr<Core>> Open(const CoreOptions& options,
                                                    Dependencies dependencies);
  // With the specification resolver and the system clock.
  static absl::StatusOr<std::unique_ptr<Core>> Open(const CoreOptions& options);

  const CoreOptions& options() const { return options_; }
  ~Core() {
    Stop();
    Interrupt();
    sweeper_.Stop();
  }

  // Applies the queued commands and refuses later ones. Reads still work.
  void Stop() { loop_.Stop(); }
  // Ends, soon, the calls that wait for an object store or look at all files. They return
  // UNAVAILABLE.
  void Interrupt() {
    artifact_store_->Interrupt();
    usage_.Interrupt();
  }

  // Says in the directory's lock file who holds it (platform::FileLock::Describe).
  absl::Status DescribeHolder(absl::string_view text) { return lock_->Describe(text); }

  CommandLoop& loop() { return loop_; }
  // Creates the experiment of a submission. Blocks while its files are copied.
  void Submit(std::shared_ptr<Submission> submission, Done<v1::CreateExperimentResponse> done);
  // Called by commands on the loop, except for the functions that may be called on any thread.
  Submissions& submissions() { return engine_.submissions; }
  Experiments& experiments() { return engine_.experiments; }
  EventIntake& intake() { return engine_.events; }
  Leases& leases() { return engine_.leases; }
  // May be called on any thread.
  const LeaseIds& lease_ids() const { return engine_.lease_ids; }
  // These block, on the caller's thread.
  EventLog& event_log() { return event_log_; }
  Artifacts& artifacts() { return artifacts_; }
  Reads& reads() { return reads_; }
  Backups& backups() { return backups_; }
  Usage& usage() { return usage_; }
  ArtifactSweeper& sweeper() { return sweeper_; }
  Statistics GetStatistics();
  // Number of workers whose calls wait for their answers.
  int64_t waiting_calls() const { return waiting_.size(); }

 private:
  Core(const CoreOptions& options, Dependencies dependencies,
       std::unique_ptr<platform::FileLock> lock, std::unique_ptr<DiskReserve> reserve,
       std::unique_ptr<Storage> storage, std::unique_ptr<ArtifactStore> artifact_store);

  // Posts commands that delete what the retention no longer keeps, one after the other.
  void Expire(Ledger::Expiry expiry = {});
  // On the loop's thread.
  void Publish(CommittedGroup group);
  // Posts a command that has the artifacts swept and, with options.release_leases, requeues the
  // trials of all leases. Call it before the loop starts.
  void EndEarlier(std::vector<SweepRecord> left);
  void CommitFailed(const absl::Status& status);
  // Why progress, or the lease of a trial that is not `running`, cannot be stored now; empty if it
  // can.
  std::string Fault(bool running) const;

  const CoreOptions options_;
  const Clock clock_;
  const std::unique_ptr<platform::FileLock> lock_;
  const std::unique_ptr<DiskReserve> reserve_;
  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<ArtifactStore> artifact_store_;
  Fleet fleet_;
  RunningTrials running_trials_;
  Usage usage_;
  Engine engine_;
  WaitingCalls waiting_;
  // Of the last commit.
  DiskFault commit_fault_;
  CommandLoop loop_;
  ArtifactSweeper sweeper_;
  EventLog event_log_;
  Artifacts artifacts_;
  Reads reads_;
  Backups backups_;

  platform::Mutex statistics_mutex_;
  // Counters, updated with every commit. GetStatistics fills in the rest.
  Statistics statistics_ ABSL_GUARDED_BY(statistics_mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_CORE_H_
