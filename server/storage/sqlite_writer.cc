// Implements StorageWriter of storage.h.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/data_directory_names.h"
#include "platform/failpoint.h"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"
#include "server/storage/storage.h"

namespace lengthwise::server {
namespace {

// Inserting many rows in one statement halves the time per row: SQLite has a considerable cost per
// statement, such as storing the largest key.
constexpr size_t kRowsAtOnce = 30;
// Maximum that one CleanUp deletes of an experiment.
constexpr int64_t kMostDeletedRows = 1000;
constexpr int64_t kMostDeletedBytes = 2 << 20;
constexpr char kInsertTrial[] =
    "INSERT INTO trials (experiment, idx, id, pack, learning_rate, weight_seed, data_seed, state, "
    "reason, queue_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const char* InsertManyTrials() {
  static const std::string* const sql = [] {
    auto* text = new std::string(kInsertTrial);
    for (size_t row = 1; row < kRowsAtOnce; ++row) *text += ", (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    return text;
  }();
  return sql->c_str();
}

}  // namespace

absl::Status StorageWriter::Begin() {
  // Left by a caller that never committed, because of an error in between.
  if (connection_.InTransaction()) connection_.Run("ROLLBACK").IgnoreError();
  // Nothing may be acknowledged any more (SqliteOptions::on_lost).
  if (!connection_.failed_sync().ok()) return connection_.failed_sync();
  RETURN_IF_ERROR(lost_);
  connection_.ClearError();
  counts_.clear();
  changes_at_begin_ = connection_.TotalChanges();
  LENGTHWISE_FAILPOINT_OR_RETURN("storage.begin.before");
  RETURN_IF_ERROR(connection_.Run("BEGIN IMMEDIATE"));
  absl::Status status = CheckOwner();
  if (!status.ok()) connection_.Run("ROLLBACK").IgnoreError();
  if (!lost_.ok()) on_lost_(lost_);
  return status;
}

absl::Status StorageWriter::CheckOwner() {
  if (connection_.HasMoved()) {
    const absl::Status found = platform::GetFileStatus(connection_.path()).status();
    // Other errors may pass, as of a directory that cannot be searched now.
    if (found.ok() || absl::IsNotFound(found)) {
      return lost_ = absl::FailedPreconditionError(absl::StrCat(
                 connection_.path(), found.ok() ? " is another file now" : " is gone",
                 ": it was moved, replaced or deleted, so this server stores nothing more and "
                 "ends. "
                 "If it was moved, all that was acknowledged is in it: start a server there"));
    }
  }
  ASSIGN_OR_RETURN(const int64_t epoch, Number(connection_.Query("SELECT epoch FROM owner")));
  if (epoch == epoch_) return absl::OkStatus();
  return lost_ = absl::FailedPreconditionError(
             absl::StrCat(connection_.path(),
                          ": another server has opened this database since and owns it now, so "
                          "this one stores nothing more and ends. Nothing acknowledged is lost. "
                          "Run one server on a data directory, and leave its file ",
                          platform::kLockFile, " alone, which ensures that"));
}

bool StorageWriter::HasChanges() const { return connection_.TotalChanges() != changes_at_begin_; }

absl::Status StorageWriter::Commit() {
  LENGTHWISE_FAILPOINT_OR_RETURN("storage.commit.before");
  // A statement that failed left the transaction incomplete, and SQLite would commit the rest.
  absl::Status status = connection_.first_error();
  if (status.ok()) status = StoreCounts();
  if (status.ok()) status = connection_.Run("COMMIT");
  LENGTHWISE_FAILPOINT("storage.commit.after");
  // Some errors roll the transaction back; a failed COMMIT may leave it open.
  if (!status.ok() && connection_.InTransaction()) {
    connection_.Run("ROLLBACK").IgnoreError();
  }
  ReportFailedSync();
  return status;
}

absl::StatusOr<std::string> StorageWriter::ReserveExperimentId(absl::string_view name) {
  SqliteStatement query = connection_.Query(
      "INSERT INTO experiment_names VALUES (?1, 1) "
      "ON CONFLICT (name) DO UPDATE SET last_number = last_number + 1 RETURNING last_number || "
      "coalesce((SELECT '.' || tag FROM restores ORDER BY number DESC LIMIT 1), '')",
      name);
  std::string id;
  if (query.Step()) id = absl::StrCat(name, "-", query.Bytes(0));
  RETURN_IF_ERROR(query.Run());
  return id;
}

absl::Status StorageWriter::InsertExperiment(ExperimentRecord& experiment) {
  if (experiment.id.empty()) {
    ASSIGN_OR_RETURN(experiment.id, ReserveExperimentId(experiment.name));
  }
  absl::Status status = connection_.Run(
      "INSERT INTO experiments (id, name, request_id, request_fingerprint, owner, "
      "priority, specification, source, create_time, queued, retention) "
      "VALUES (?1, ?2, nullif(?3, ''), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
      experiment.id, experiment.name, experiment.request_id, experiment.request_fingerprint,
      experiment.owner, experiment.priority, SqliteBlob{experiment.specification},
      SqliteBlob{experiment.source}, experiment.create_time, experiment.counts.queued(),
      experiment.retention == absl::InfiniteDuration()
          ? int64_t{-1}
          : absl::ToInt64Microseconds(experiment.retention));
  experiment.key = connection_.LastInsertRowId();
  return status;
}

absl::Status StorageWriter::ExtendExperiment(const ExperimentRecord& experiment, int32_t added) {
  return connection_.Run(
      "UPDATE experiments SET specification = ?2, queued = queued + ?3, end_time = 0 "
      "WHERE key = ?1",
      experiment.key, SqliteBlob{experiment.specification}, added);
}

absl::Status StorageWriter::ChangeOwner(int64_t key, absl::string_view owner) {
  return connection_.Run("UPDATE experiments SET owner = ?2 WHERE key = ?1", key, owner);
}

absl::StatusOr<int64_t> StorageWriter::InsertShared(int64_t experiment,
                                                    absl::string_view specification) {
  RETURN_IF_ERROR(connection_.Run("INSERT INTO shared (experiment, specification) VALUES (?1, ?2)",
                                  experiment, SqliteBlob{specification}));
  return connection_.LastInsertRowId();
}

absl::Status StorageWriter::InsertPack(PackRecord& pack) {
  absl::Status status = connection_.Run(
      "INSERT INTO packs (experiment, pack_key, specification, task, network, encoding, shared) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      pack.experiment, pack.pack_key, SqliteBlob{pack.specification}, pack.task, pack.network,
      pack.encoding, pack.shared);
  pack.key = connection_.LastInsertRowId();
  return status;
}

absl::Status StorageWriter::InsertTrials(absl::Span<TrialRecord> trials) {
  while (!trials.empty()) {
    const size_t rows = trials.size() < kRowsAtOnce ? 1 : kRowsAtOnce;
    RETURN_IF_ERROR(InsertRows(trials.first(rows)));
    trials.remove_prefix(rows);
  }
  return absl::OkStatus();
}

absl::Status StorageWriter::InsertRows(absl::Span<TrialRecord> trials) {
  SqliteStatement statement =
      connection_.Query(trials.size() == 1 ? kInsertTrial : InsertManyTrials());
  if (!statement.status().ok()) return statement.status();
  int index = 0;
  const auto bind = [&](const auto&... values) { (statement.Bind(++index, values), ...); };
  for (const TrialRecord& trial : trials) {
    bind(trial.experiment, trial.index, trial.id, trial.pack, trial.learning_rate,
         trial.weight_seed, trial.data_seed, trial.state, trial.reason, trial.queue_time);
  }
  absl::Status status = statement.Run();
  // AUTOINCREMENT assigns consecutive keys.
  int64_t key = connection_.LastInsertRowId() - static_cast<int64_t>(trials.size());
  for (TrialRecord& trial : trials) trial.key = ++key;
  return status;
}

absl::Status StorageWriter::StoreCounts() {
  for (const auto& [experiment, changes] : std::exchange(counts_, {})) {
    const v1::TrialCounts& counts = changes.counts;
    RETURN_IF_ERROR(connection_.Run(
        "UPDATE experiments SET queued = queued + ?2, running = running + ?3, "
        "succeeded = succeeded + ?4, failed = failed + ?5, cancelled = cancelled + ?6, "
        "end_time = CASE WHEN queued + ?2 > 0 OR running + ?3 > 0 THEN 0 "
        "ELSE coalesce(nullif(?7, 0), end_time) END WHERE key = ?1",
        experiment, counts.queued(), counts.running(), counts.succeeded(), counts.failed(),
        counts.cancelled(), changes.end_time));
  }
  return absl::OkStatus();
}

absl::Status StorageWriter::UpdateTrial(const TrialRecord& trial, v1::TrialState previous) {
  absl::Status status = connection_.Run(
      "UPDATE trials SET state = ?2, reason = ?3, attempt = ?4, failures = ?5, "
      "not_before = ?6, worker = ?7, token = ?8, checkpoint_step = ?9, start_time = ?10, "
      "end_time = ?11, outcome = ?12, failure = ?13, failure_step = ?14, "
      "preemptions = ?15, pack_limit = ?16, queue_time = ?17, losses = ?18 WHERE key = ?1",
      trial.key, trial.state, trial.reason, trial.attempt, trial.failures, trial.not_before,
      trial.worker, trial.token, trial.checkpoint_step, trial.start_time, trial.end_time,
      SqliteBlob{trial.outcome}, trial.failure, trial.failure_step, trial.preemptions,
      trial.pack_limit, trial.queue_time, trial.losses);
  if (!status.ok() || trial.state == previous) return status;
  CountChanges& changes = counts_[trial.experiment];
  CountTrials(previous, -1, changes.counts);
  CountTrials(trial.state, 1, changes.counts);
  if (HasEnded(trial.state)) changes.end_time = trial.end_time;
  return absl::OkStatus();
}

absl::Status StorageWriter::AppendEvent(EventRecord& event) {
  absl::Status status = connection_.Run(
      "INSERT INTO events (experiment, trial, attempt, sequence, step, kind, payload) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      event.experiment, event.trial, event.attempt, event.sequence, event.step, event.kind,
      SqliteBlob{event.payload});
  event.position = connection_.LastInsertRowId();
  return status;
}

absl::Status StorageWriter::DeleteWorkerEvents(int64_t trial, int64_t after_position) {
  may_have_space_ = true;
  return connection_.Run(
      "DELETE FROM events WHERE trial = ?1 AND position > ?2 AND sequence > 0 AND kind <> ?3",
      trial, after_position, static_cast<int>(v1::Event::kLogLine));
}

absl::Status StorageWriter::DeleteMaps(int64_t trial) {
  may_have_space_ = true;
  return connection_.Run("DELETE FROM events WHERE trial = ?1 AND kind IN (?2, ?3)", trial,
                         static_cast<int>(v1::Event::kAttentionMap),
                         static_cast<int>(v1::Event::kProjection));
}

absl::Status StorageWriter::SetExpired(int64_t key) {
  return connection_.Run("UPDATE experiments SET expired_end = end_time WHERE key = ?1", key);
}

absl::Status StorageWriter::InsertLease(const LeaseRecord& lease) {
  return connection_.Run(
      "INSERT INTO leases (token, worker, grant_time, size, owner) VALUES (?1, ?2, ?3, ?4, ?5)",
      lease.token, lease.worker, lease.grant_time, lease.size, lease.owner);
}

absl::Status StorageWriter::DeleteLease(int64_t token, absl::Time end) {
  RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO usage (owner, worker_time) SELECT owner, max(0, ?2 - grant_time) FROM leases "
      "WHERE token = ?1 AND owner <> '' ON CONFLICT (owner) DO UPDATE SET "
      "worker_time = worker_time + excluded.worker_time",
      token, end));
  return connection_.Run("DELETE FROM leases WHERE token = ?1", token);
}

absl::Status StorageWriter::AddUsage(int64_t experiment, int64_t trials, int64_t steps) {
  return connection_.Run(
      "INSERT INTO usage (owner, trials, steps) SELECT owner, ?2, ?3 FROM experiments "
      "WHERE key = ?1 ON CONFLICT (owner) DO UPDATE SET trials = trials + excluded.trials, "
      "steps = steps + excluded.steps",
      experiment, trials, steps);
}

absl::Status StorageWriter::PutHold(const HoldRecord& hold) {
  return connection_.Run("REPLACE INTO holds VALUES (?1, ?2)", hold.worker, hold.why);
}

absl::Status StorageWriter::DeleteHold(absl::string_view worker) {
  return connection_.Run("DELETE FROM holds WHERE worker = ?1", worker);
}

absl::Status StorageWriter::InsertSweep(const SweepRecord& sweep) {
  return connection_.Run(
      "INSERT INTO sweeps (experiment, trial, sha256, attempt) VALUES (?1, ?2, ?3, ?4)",
      sweep.experiment, sweep.trial, sweep.sha256, sweep.attempt);
}

absl::Status StorageWriter::DeleteSweep(int64_t key) {
  return connection_.Run("DELETE FROM sweeps WHERE key = ?1", key);
}

absl::Status StorageWriter::DeleteExperiment(int64_t key) {
  may_have_rows_ = true;
  // The request outlives its experiment: repeated, it must not create the experiment again.
  RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO deleted_requests SELECT request_id, request_fingerprint, id FROM experiments "
      "WHERE key = ?1 AND request_id IS NOT NULL",
      key));
  // Hides the experiment at once. Deleting its rows takes long, so CleanUp does that in parts.
  return connection_.Run(
      "UPDATE experiments SET id = '" LENGTHWISE_DELETED
      "' || key, request_id = NULL, "
      "specification = x'', source = x'', queued = 0, running = 0, succeeded = 0, failed = 0, "
      "cancelled = 0 WHERE key = ?1",
      key);
}

absl::Status StorageWriter::DeleteRows(int64_t experiment) {
  int64_t last = 0;
  int64_t rows = 0;
  {
    SqliteStatement query = connection_.Query(
        "SELECT position, length(payload) FROM events WHERE experiment = ?1 ORDER BY position "
        "LIMIT ?2",
        experiment, kMostDeletedRows);
    for (int64_t bytes = 0; bytes < kMostDeletedBytes && query.Step(); ++rows) {
      last = query.Int(0);
      bytes += query.Int(1);
    }
    RETURN_IF_ERROR(query.status());
  }
  if (rows > 0) {
    return connection_.Run("DELETE FROM events WHERE experiment = ?1 AND position <= ?2",
                           experiment, last);
  }
  for (const char* sql : {"DELETE FROM trials WHERE key IN (SELECT key FROM trials "
                          "WHERE experiment = ?1 ORDER BY idx LIMIT ?2)",
                          "DELETE FROM packs WHERE key IN (SELECT key FROM packs "
                          "WHERE experiment = ?1 LIMIT ?2)",
                          "DELETE FROM shared WHERE key IN (SELECT key FROM shared "
                          "WHERE experiment = ?1 LIMIT ?2)"}) {
    const int64_t before = connection_.TotalChanges();
    absl::Status status = connection_.Run(sql, experiment, kMostDeletedRows);
    if (!status.ok() || connection_.TotalChanges() > before) return status;
  }
  // Last, because CleanUp finds the other rows through it.
  return connection_.Run("DELETE FROM experiments WHERE key = ?1", experiment);
}

absl::StatusOr<bool> StorageWriter::CleanUp() {
  if (!may_have_rows_) return GiveBackSpace();
  // A range that the index on ids can find: "0" follows "/".
  ASSIGN_OR_RETURN(const int64_t experiment,
                   Number(connection_.Query("SELECT key FROM experiments WHERE id >= "
                                            "'" LENGTHWISE_DELETED "' AND id < '0' LIMIT 1")));
  if (experiment == 0) {
    may_have_rows_ = false;
    return GiveBackSpace();
  }
  // No row refers to the deleted rows, and SQLite would read all trials once per pack to verify
  // that. The pragma has no effect within a transaction.
  absl::Status status = connection_.Execute("PRAGMA foreign_keys = OFF");
  if (status.ok()) status = Begin();
  if (status.ok()) status = DeleteRows(experiment);
  LENGTHWISE_FAILPOINT("storage.rows.deleted");
  if (status.ok()) status = Commit();
  if (!status.ok() && connection_.InTransaction()) {
    connection_.Run("ROLLBACK").IgnoreError();
  }
  const absl::Status checked_again = connection_.Execute("PRAGMA foreign_keys = ON");
  if (status.ok()) status = checked_again;
  if (!status.ok()) {
    // A full disk is temporary, so try again. Damage is permanent, so do not.
    may_have_rows_ = !absl::IsDataLoss(status);
    return status;
  }
  may_have_space_ = true;
  return true;
}

void StorageWriter::ReportFailedSync() {
  if (!connection_.failed_sync().ok()) on_lost_(connection_.failed_sync());
}

absl::StatusOr<bool> StorageWriter::GiveBackSpace() {
  if (!may_have_space_) return false;
  may_have_space_ = false;
  ASSIGN_OR_RETURN(const UnusedPages unused, FindUnusedPages(connection_));
  // Keep a quarter, for the next writes.
  if (!unused.incremental || unused.unused < kFewPages || unused.unused < unused.pages / 4) {
    // The file only shrinks when the log is copied into it.
    if (std::exchange(gave_space_back_, false)) connection_.Checkpoint();
    ReportFailedSync();
    return false;
  }
  absl::Status status = Begin();
  if (status.ok()) status = connection_.Execute("PRAGMA incremental_vacuum(256)");
  if (status.ok()) status = Commit();
  may_have_space_ = !absl::IsDataLoss(status);  // as in CleanUp
  if (!status.ok()) return status;
  gave_space_back_ = true;
  return true;
}

}  // namespace lengthwise::server
