#include "server/coordination/core.h"

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/networks/catalogue.h"
#include "monitoring/samples.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "server/coordination/retention.h"
#include "server/storage/backup.h"
#include "server/storage/directory_artifact_store.h"
#include "server/storage/s3_artifact_store.h"
#include "server/storage/shared_store.h"
#include "server/storage/sqlite_storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {
namespace {

Statistics NoStatistics() {
  Statistics statistics;
  statistics.decided = NoDecisions();
  statistics.lease_trials = monitoring::EmptyHistogram({1, 2, 4, 8, 16, 32, 64, 128});
  statistics.commit_seconds = monitoring::EmptyHistogram(
      {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5});
  const auto sizes = {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0};
  statistics.commit_commands = statistics.commit_events = monitoring::EmptyHistogram(sizes);
  return statistics;
}

std::string DatabaseOf(const CoreOptions& options) {
  return absl::StrCat(options.data_dir, "/", platform::kDatabaseFile);
}

// A server makes the directory of artifacts after its database, which is never empty from then on.
// Without this check, it would start without the experiments of a database that was lost.
absl::Status CheckDatabaseIsThere(const CoreOptions& options) {
  const std::string artifacts = absl::StrCat(options.data_dir, "/", platform::kArtifactsDirectory);
  if (!platform::GetFileStatus(artifacts).ok()) return absl::OkStatus();
  const auto database = platform::GetFileStatus(DatabaseOf(options));
  const bool is_missing = absl::IsNotFound(database.status());
  if (!is_missing && (!database.ok() || database->size > 0)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      DatabaseOf(options), is_missing ? " is missing" : " is empty", ", but ", artifacts,
      " is of a server that had experiments; restore a backup with `lengthwise_server --restore "
      "BACKUP --data_dir NEW`, or start without them in another data directory"));
}

bool IsS3(const CoreOptions& options) { return absl::StartsWith(options.artifacts, "s3://"); }

absl::StatusOr<std::unique_ptr<ArtifactStore>> OpenArtifacts(const CoreOptions& options) {
  const std::string directory = absl::StrCat(options.data_dir, "/", platform::kArtifactsDirectory);
  if (options.artifacts.empty()) {
    if (options.take_over_artifacts) {
      return absl::InvalidArgumentError("--take_over_artifacts needs --artifacts");
    }
    RETURN_IF_ERROR(CheckNeedsNoSharedStore(options.data_dir));
    return DirectoryArtifactStore::Open(directory);
  }
  ASSIGN_OR_RETURN(const bool has_checkpoints, NamesCheckpoints(DatabaseOf(options)));
  if (IsS3(options)) {
    ASSIGN_OR_RETURN(auto client, OpenS3(options.artifacts, options.s3));
    ASSIGN_OR_RETURN(auto files, DirectoryArtifactStore::Open(directory));
    return S3ArtifactStore::Open({.data_dir = options.data_dir,
                                  .take_over = options.take_over_artifacts,
                                  .has_checkpoints = has_checkpoints},
                                 std::move(client), std::move(files));
  }
  ASSIGN_OR_RETURN(auto shared, SharedStore::Open({.directory = options.artifacts,
                                                   .data_dir = options.data_dir,
                                                   .take_over = options.take_over_artifacts,
                                                   .has_checkpoints = has_checkpoints}));
  return DirectoryArtifactStore::Open(directory, std::move(shared));
}

absl::Status Restore(const CoreOptions& options) {
  CheckpointPlace place;
  if (IsS3(options)) {
    ASSIGN_OR_RETURN(auto opened, OpenS3(options.artifacts, options.s3));
    place = CheckpointsInS3(std::move(opened));
  } else if (!options.artifacts.empty()) {
    place = CheckpointsIn(options.artifacts);
  }
  return RestoreBackup(options.restore_from, options.data_dir, place);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Core>> Core::Open(const CoreOptions& options) {
  Dependencies dependencies;
  dependencies.resolve =
      [limits = specification::Limits{.max_trials = options.max_trials,
                                      .max_grid_bytes = options.max_grid_bytes},
       allows_python = options.allow_python_networks](
          const v1::CreateExperimentRequest& request) -> absl::StatusOr<specification::Grid> {
    ASSIGN_OR_RETURN(specification::Grid grid,
                     request.has_specification_text()
                         ? specification::Resolve(request.specification_text(), limits)
                         : specification::Resolve(request.specification(), limits));
    for (const v1::Component& network : grid.specification.networks()) {
      if (allows_python || network.name() != models::kPythonNetwork) continue;
      return absl::FailedPreconditionError(
          "this server does not run users' code: its operator allows the network \"python\" with "
          "--allow_python_networks, here and on the workers; `lengthwise run` trains it here");
    }
    return grid;
  };
  return Open(options, std::move(dependencies));
}

absl::StatusOr<std::unique_ptr<Core>> Core::Open(const CoreOptions& options,
                                                 Dependencies dependencies) {
  // Before the lock, whose file would make the data directory non-empty.
  if (!options.restore_from.empty()) {
    RETURN_IF_ERROR(Restore(options));
  }
  if (platform::IsBackup(options.data_dir)) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.data_dir, " is a backup, which a server would change; restore it first: ",
        "`lengthwise_server --restore ", options.data_dir, " --data_dir NEW`"));
  }
  if (absl::Status status = platform::CreateDirectories(options.data_dir); !status.ok()) {
    return absl::FailedPreconditionError(status.message());
  }
  // Before anything is opened or cleaned up: another server's unfinished files must stay.
  // A client that looks for a running server holds the lock for a moment.
  const std::string lock_file = absl::StrCat(options.data_dir, "/", platform::kLockFile);
  auto lock = platform::FileLock::Acquire(lock_file);
  for (int tries = 1; tries < 10 && absl::IsAborted(lock.status()); ++tries) {
    absl::SleepFor(absl::Milliseconds(20));
    lock = platform::FileLock::Acquire(lock_file);
  }
  if (!lock.ok() && !absl::IsAborted(lock.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        lock.status().message(), "; the server must be able to write in its data directory"));
  }
  if (!lock.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(lock.status().message(), "; another server may be using ", options.data_dir,
                     ": stop it or choose another data directory"));
  }
  RETURN_IF_ERROR(CheckDatabaseIsThere(options));
  SqliteOptions sqlite_options;
  sqlite_options.max_bytes = dependencies.max_database_bytes;
  if (dependencies.on_lost) sqlite_options.on_lost = dependencies.on_lost;
  auto reserve =
      std::make_unique<DiskReserve>(absl::StrCat(options.data_dir, "/", platform::kReserveFile),
                                    options.reserve_bytes, dependencies.measure_disk);
  auto opened = OpenSqliteStorage(DatabaseOf(options), sqlite_options);
  if (absl::IsResourceExhausted(opened.status()) && reserve->GiveUp()) {
    opened = OpenSqliteStorage(DatabaseOf(options), sqlite_options);
  }
  RETURN_IF_ERROR(opened.status());
  std::unique_ptr<Storage> storage = *std::move(opened);
  if (dependencies.wrap_storage) storage = dependencies.wrap_storage(std::move(storage));
  RETURN_IF_ERROR(DeleteUnfinishedBackups(options.data_dir));
  ASSIGN_OR_RETURN(std::unique_ptr<ArtifactStore> artifact_store, OpenArtifacts(options));
  if (options.take_over_artifacts) {
    RETURN_IF_ERROR(LogTrialsWithoutCheckpoint(DatabaseOf(options), *artifact_store));
  }
  std::unique_ptr<Core> core(new Core(options, std::move(dependencies), *std::move(lock),
                                      std::move(reserve), std::move(storage),
                                      std::move(artifact_store)));
  RETURN_IF_ERROR(core->engine_.ledger.Rebuild());
  {
    ASSIGN_OR_RETURN(const auto reader, core->storage_->Read());
    if (IsS3(options)) {
      RETURN_IF_ERROR(FindUnlisted(*reader, *core->artifact_store_));
    }
    ASSIGN_OR_RETURN(std::vector<SweepRecord> left,
                     FindLeftArtifacts(*reader, *core->artifact_store_));
    core->EndEarlier(std::move(left));
    // Some of them. The loop's housekeeping deletes the others.
    core->artifact_store_->DeleteUnusedUploads();
  }
  core->loop_.Start();
  core->sweeper_.Start();
  return core;
}

Core::Core(const CoreOptions& options, Dependencies dependencies,
           std::unique_ptr<platform::FileLock> lock, std::unique_ptr<DiskReserve> reserve,
           std::unique_ptr<Storage> storage, std::unique_ptr<ArtifactStore> artifact_store)
    : options_(options),
      clock_(std::move(dependencies.clock)),
      lock_(std::move(lock)),
      reserve_(std::move(reserve)),
      storage_(std::move(storage)),
      artifact_store_(std::move(artifact_store)),
      usage_(*storage_, *artifact_store_, clock_, options.max_owner_bytes),
      engine_(
          options, std::move(dependencies.resolve),
          [this](const std::string& owner, int64_t added) {
            return usage_.CheckBytes(owner, added);
          },
          *storage_, *artifact_store_, fleet_, clock_),
      waiting_(engine_.ledger, engine_.leases),
      loop_({.max_queued_bytes = dependencies.max_queued_bytes,
             .publish = [this](CommittedGroup group) { Publish(std::move(group)); },
             .commit_failed = [this](const absl::Status& status) { CommitFailed(status); },
             .find_room =
                 [this] {
                   // Until a checkpoint is written, its worker may send nothing else, so that no
                   // commit fails.
                   if (absl::IsResourceExhausted(artifacts_.fault())) reserve_->GiveUp();
                   reserve_->Take();
                   return reserve_->room();
                 },
             .make_room =
                 [this](const absl::Status& status) {
                   return absl::IsResourceExhausted(status) && reserve_->GiveUp();
                 },
             .housekeep =
                 [this] {
                   Expire();
                   return artifact_store_->DeleteUnusedUploads();
                 }},
            engine_.ledger, waiting_),
      sweeper_(*storage_, *artifact_store_, loop_),
      event_log_(*storage_, running_trials_),
      artifacts_(*storage_, *artifact_store_, *reserve_, engine_.lease_ids, usage_,
                 options.max_artifact_bytes, options.max_data_bytes,
                 absl::StrCat(options.data_dir, "/upload_quotas")),
      reads_(*storage_, loop_, engine_.ledger, waiting_, fleet_, usage_,
             [this](bool running) { return Fault(running); }),
      backups_(options.data_dir, clock_, *storage_, *artifact_store_, *reserve_, sweeper_, usage_),
      statistics_(NoStatistics()) {}

void Core::Expire(Ledger::Expiry expiry) {
  loop_.PostCommand({.apply = [this, expiry]() -> CommandLoop::Answer {
                       // A copy, because a command that failed may be applied again.
                       Ledger::Expiry next = expiry;
                       // Commit fails after an error of the store, and the next housekeeping tries
                       // again.
                       if (!engine_.ledger.Expire(options_.retention, next).value_or(false)) {
                         return nullptr;
                       }
                       return [this, next] { Expire(next); };
                     },
                     .fail = [](const absl::Status&) {},
                     .frees_space = true});
}

std::string Core::Fault(bool running) const {
  absl::Status fault = commit_fault_.written();
  if (fault.ok() && running) fault = artifacts_.fault();
  if (fault.ok()) fault = reserve_->room();
  return fault.ok() ? ""
                    : absl::StrCat("waits, because the server cannot store its progress: ",
                                   fault.message());
}

void Core::CommitFailed(const absl::Status& status) {
  commit_fault_.Note(status);
  reads_.Forget();
  platform::MutexLock lock(statistics_mutex_);
  ++statistics_.commit_failures;
}

void Core::Publish(CommittedGroup group) {
  Effects& effects = group.effects;
  {
    platform::MutexLock lock(statistics_mutex_);
    statistics_.events_stored += effects.events;
    statistics_.points_stored += effects.points;
    statistics_.lease_expiries += effects.lease_expiries;
    statistics_.lost_workers += static_cast<int64_t>(effects.lost_workers.size());
    Add(effects.decided, statistics_.decided);
    for (const int32_t trials : effects.granted) {
      monitoring::Observe(trials, statistics_.lease_trials);
    }
    if (group.changed) {
      monitoring::Observe(absl::ToDoubleSeconds(group.commit_time), statistics_.commit_seconds);
      monitoring::Observe(static_cast<double>(group.commands), statistics_.commit_commands);
      monitoring::Observe(static_cast<double>(effects.events), statistics_.commit_events);
    }
  }
  for (const std::string& worker : effects.lost_workers) {
    platform::LogWarning("worker ", worker, " is lost: it has been silent for ",
                         absl::FormatDuration(options_.scheduler.lease_duration));
  }
  for (const auto& [level, text] : effects.log) platform::Log(level, text);
  if (group.changed) commit_fault_.Note(absl::OkStatus());
  reads_.Publish(effects);
  // Last, because a subscriber that is woken reads at once and must see the effects above.
  event_log_.Publish(effects);
}

void Core::EndEarlier(std::vector<SweepRecord> left) {
  if (left.empty() && !options_.release_leases) return;
  loop_.PostCommand(
      {.apply = [this, left = std::move(left)]() -> CommandLoop::Answer {
         Ledger& ledger = engine_.ledger;
         // Commit fails after an error of the store, so it is not lost.
         for (const SweepRecord& sweep : left) {
           ledger.store().InsertSweep(sweep).IgnoreError();
         }
         if (!options_.release_leases) return nullptr;
         ledger
             .Record(ledger.scheduler().EndLeases(
                 "was released when the server started, because its worker has ended"))
             .IgnoreError();
         return nullptr;
       },
       .fail =
           [](const absl::Status& status) {
             platform::LogWarning(
                 "an earlier server's leases expire as usual, and artifacts that it "
                 "left stay until the next start: ",
                 status.message());
           }});
}

void Core::Submit(std::shared_ptr<Submission> submission, Done<v1::CreateExperimentResponse> done) {
  using Response = std::optional<v1::CreateExperimentResponse>;
  const auto post = [this, submission](Done<Response> answer) {
    loop_.Post<Response>([this, submission] { return submissions().Create(*submission); },
                         std::move(answer), submission->bytes());
  };
  const Done<Response> answer = [submission, done](absl::StatusOr<Response> response) {
    submission->copies.reset();  // other threads may still hold the submission
    if (!response.ok()) return done(response.status());
    done(**std::move(response));
  };
  if (!submission->NeedsCopies()) return post(answer);
  // This thread waits for the store, so that the loop does not. Submissions that wait are as few as
  // the callers' threads.
  std::promise<absl::StatusOr<Response>> announced;
  post([&announced](absl::StatusOr<Response> response) {
    announced.set_value(std::move(response));
  });
  absl::StatusOr<Response> response = announced.get_future().get();
  if (!response.ok() || response->has_value()) return answer(std::move(response));
  submission->copied = submissions().CopyFiles(*submission);
  post(answer);
}

Statistics Core::GetStatistics() {
  Statistics statistics;
  {
    platform::MutexLock lock(statistics_mutex_);
    statistics = statistics_;
  }
  statistics.workers = fleet_.Samples(clock_.steady());
  loop_.BetweenGroups([&] {
    const Scheduler& scheduler = engine_.ledger.scheduler();
    statistics.leases = scheduler.leases();
    // The default pack sizes of a worker on a CPU and on a GPU.
    for (const int32_t pack_size : {1, 30}) {
      int64_t& wanted = statistics.wanted_workers[pack_size];
      for (const auto& [shape, packs] : scheduler.Wanted(pack_size)) wanted += packs.packs;
    }
    std::erase_if(statistics.workers, [&](const monitoring::WorkerSample& worker) {
      return !scheduler.IsAlive(worker.worker_id, clock_.steady());
    });
    for (const monitoring::WorkerSample& worker : statistics.workers) {
      statistics.unfit_workers += !scheduler.FaultOf(worker.worker_id, clock_.steady()).empty();
      statistics.drained_workers += !scheduler.HoldOf(worker.worker_id).empty();
    }
    statistics.queue_paused = !scheduler.HoldOf("").empty();
  });
  statistics.running_trials = running_trials_.List();
  statistics.owners = usage_.LastOwners();
  statistics.example_files_stored = artifacts_.stored_files();
  statistics.example_bytes_stored = artifacts_.stored_file_bytes();
  statistics.database_bytes = storage_->SizeBytes();
  const Backups::Last backup = backups_.last();
  statistics.last_backup_seconds = absl::ToDoubleSeconds(backup.time - absl::UnixEpoch());
  statistics.last_backup_failed = backup.failed;
  platform::DiskSpace disk =
      platform::GetDiskSpace(options_.data_dir).value_or(platform::DiskSpace());
  if (const auto elsewhere = MeasureDiskElsewhere(artifact_store_->elsewhere())) {
    disk = FullerDisk(disk, *elsewhere);
  }
  statistics.disk_free_bytes = disk.free_bytes;
  statistics.disk_size_bytes = disk.size_bytes;
  statistics.disk_full = !reserve_->room().ok();
  const auto reader = storage_->Read();
  // The other values are exported without the store: operators need them most when its disk fails.
  if (!reader.ok()) return statistics;
  const auto counts = (*reader)->TotalCounts();
  if (counts.ok()) statistics.trials = *counts;
  const auto oldest = (*reader)->OldestQueued();
  if (oldest.ok() && *oldest != NoTime()) {
    // At least 0, because the wall clock may have been set back.
    statistics.oldest_queued_seconds =
        std::max(0.0, absl::ToDoubleSeconds(clock_.wall() - *oldest));
  }
  for (const RunningTrial& trial : statistics.running_trials) {
    if (statistics.running_experiments.contains(trial.experiment_id)) continue;
    const auto experiment = (*reader)->FindExperiment(trial.experiment_id);
    if (!experiment.ok() || !experiment->has_value()) continue;
    statistics.running_experiments[trial.experiment_id] = (*experiment)->counts;
  }
  return statistics;
}

}  // namespace lengthwise::server
