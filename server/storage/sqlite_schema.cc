#include "server/storage/sqlite_schema.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

// Migration i upgrades a database from version i to i + 1. Never change a released migration: add
// the next one. Times are microseconds since 1970, 0 for "not yet".
constexpr std::array<const char*, kSchemaVersion> kMigrations = {R"sql(
CREATE TABLE experiment_names (
  name        TEXT PRIMARY KEY,
  last_number INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE experiments (
  key                 INTEGER PRIMARY KEY AUTOINCREMENT,
  id                  TEXT NOT NULL UNIQUE,
  name                TEXT NOT NULL,
  request_id          TEXT UNIQUE,
  request_fingerprint TEXT NOT NULL,
  owner               TEXT NOT NULL,
  priority            INTEGER NOT NULL,
  specification       BLOB NOT NULL,  -- v1.ExperimentSpecification
  source              BLOB NOT NULL,  -- v1.SpecificationText
  create_time         INTEGER NOT NULL,
  end_time            INTEGER NOT NULL DEFAULT 0,
  -- Trials by state.
  queued              INTEGER NOT NULL DEFAULT 0,
  running             INTEGER NOT NULL DEFAULT 0,
  succeeded           INTEGER NOT NULL DEFAULT 0,
  failed              INTEGER NOT NULL DEFAULT 0,
  cancelled           INTEGER NOT NULL DEFAULT 0
);

-- What the trials of one pack key share.
CREATE TABLE packs (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment    INTEGER NOT NULL REFERENCES experiments (key),
  pack_key      TEXT NOT NULL,
  specification BLOB NOT NULL,  -- v1.TrialSpecification without learning rate and seeds
  task          TEXT NOT NULL,
  network       TEXT NOT NULL,
  encoding      TEXT NOT NULL
);
CREATE INDEX packs_by_experiment ON packs (experiment);

CREATE TABLE trials (
  key             INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment      INTEGER NOT NULL REFERENCES experiments (key),
  idx             INTEGER NOT NULL,
  id              TEXT NOT NULL,
  pack            INTEGER NOT NULL REFERENCES packs (key),
  learning_rate   REAL NOT NULL,
  weight_seed     INTEGER NOT NULL,
  data_seed       INTEGER NOT NULL,
  state           INTEGER NOT NULL,  -- v1.TrialState
  reason          TEXT NOT NULL,
  attempt         INTEGER NOT NULL DEFAULT 0,
  failures        INTEGER NOT NULL DEFAULT 0,
  not_before      INTEGER NOT NULL DEFAULT 0,
  worker          TEXT NOT NULL DEFAULT '',
  token           INTEGER NOT NULL DEFAULT 0,
  checkpoint_step INTEGER NOT NULL DEFAULT 0,
  start_time      INTEGER NOT NULL DEFAULT 0,
  end_time        INTEGER NOT NULL DEFAULT 0,
  outcome         BLOB NOT NULL DEFAULT x''  -- v1.Outcome
);
CREATE UNIQUE INDEX trials_by_index ON trials (experiment, idx);
CREATE UNIQUE INDEX trials_by_id ON trials (experiment, id);
CREATE INDEX trials_queued ON trials (key) WHERE state = 1;
CREATE INDEX trials_running ON trials (key) WHERE state = 2;
CREATE INDEX trials_cancelled ON trials (token) WHERE state = 5 AND token > 0;

CREATE TABLE events (
  position   INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment INTEGER NOT NULL,
  trial      INTEGER NOT NULL REFERENCES trials (key),
  attempt    INTEGER NOT NULL,
  sequence   INTEGER NOT NULL,  -- 0: made by the server
  step       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,  -- field number in v1.Event
  payload    BLOB NOT NULL      -- v1.Event without the fields above
);
CREATE INDEX events_by_experiment ON events (experiment, position);
CREATE INDEX events_by_kind ON events (trial, kind);
CREATE UNIQUE INDEX events_by_sequence ON events (trial, attempt, sequence) WHERE sequence > 0;

-- Leases that have not ended; their trials carry the token.
CREATE TABLE leases (
  token      INTEGER PRIMARY KEY AUTOINCREMENT,
  worker     TEXT NOT NULL,
  grant_time INTEGER NOT NULL
);
)sql",
                                                                 R"sql(
-- What the scheduler must know of a trial's past after a restart: the class and step of its last
-- failure, how often it was preempted, the largest pack that it may be in (0: any).
ALTER TABLE trials ADD COLUMN failure TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN failure_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN preemptions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN pack_limit INTEGER NOT NULL DEFAULT 0;
-- Trials of a lease when it was granted; 0 where that is not known.
ALTER TABLE leases ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
)sql",
                                                                 R"sql(
-- When a trial was queued last. Of those that wait already, what is known is when their experiment
-- was submitted.
ALTER TABLE trials ADD COLUMN queue_time INTEGER NOT NULL DEFAULT 0;
UPDATE trials SET queue_time = (SELECT create_time FROM experiments WHERE key = trials.experiment)
  WHERE state = 1;
DROP INDEX trials_queued;
CREATE INDEX trials_queued ON trials (queue_time) WHERE state = 1;
)sql",
                                                                 R"sql(
-- What lease ids are made of (LeaseKey of records.h); one row.
CREATE TABLE lease_keys (
  key         TEXT NOT NULL,
  first_token INTEGER NOT NULL
);
-- Requests whose experiment was deleted: repeated, they create nothing.
CREATE TABLE deleted_requests (
  request_id          TEXT PRIMARY KEY,
  request_fingerprint TEXT NOT NULL,
  experiment_id       TEXT NOT NULL
) WITHOUT ROWID;
-- Each time that a backup became this database. Ids of experiments that were made since carry the
-- newest tag.
CREATE TABLE restores (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tag    TEXT NOT NULL,
  time   INTEGER NOT NULL
);
)sql",
                                                                 R"sql(
-- How many workers in a row were lost with a trial, without a new checkpoint since the first.
ALTER TABLE trials ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
)sql",
                                                                 R"sql(
-- How often servers have opened the database; one row. It belongs to the server that read this
-- number when it opened it.
CREATE TABLE owner (
  epoch INTEGER NOT NULL
);
INSERT INTO owner VALUES (0);
)sql",
                                                                 R"sql(
-- Artifacts that may no longer be needed (SweepRecord of records.h).
CREATE TABLE sweeps (
  key        INTEGER PRIMARY KEY,
  experiment TEXT NOT NULL,
  trial      TEXT NOT NULL,
  sha256     TEXT NOT NULL,
  attempt    INTEGER NOT NULL
);
)sql",
                                                                 R"sql(
-- Workers that get no new leases, and why; '' for all.
CREATE TABLE holds (
  worker TEXT PRIMARY KEY,
  why    TEXT NOT NULL
) WITHOUT ROWID;
)sql",
                                                                 R"sql(
-- What each owner has used since there is this table, by deleted experiments as well.
CREATE TABLE usage (
  owner       TEXT PRIMARY KEY,
  trials      INTEGER NOT NULL DEFAULT 0,  -- that were started
  steps       INTEGER NOT NULL DEFAULT 0,  -- up to the newest checkpoints
  worker_time INTEGER NOT NULL DEFAULT 0   -- microseconds of leases
) WITHOUT ROWID;
-- The owner of a lease's trials when it was granted; '' where that is not known.
ALTER TABLE leases ADD COLUMN owner TEXT NOT NULL DEFAULT '';
-- How long the artifacts stay after the experiment's end, in microseconds (0: as long as the server
-- says, -1: forever), and the end after which they were last deleted.
ALTER TABLE experiments ADD COLUMN retention INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN expired_end INTEGER NOT NULL DEFAULT 0;
-- All that FindExpired reads: in a row, these columns are behind the specification.
CREATE INDEX experiments_kept ON experiments (key, id, end_time, expired_end, retention)
  WHERE end_time > 0 AND end_time <> expired_end;
)sql"};

}  // namespace

absl::StatusOr<UnusedPages> FindUnusedPages(SqliteConnection& connection) {
  SqliteStatement query = connection.Query(
      "SELECT page_count, freelist_count, page_size, auto_vacuum FROM pragma_page_count, "
      "pragma_freelist_count, pragma_page_size, pragma_auto_vacuum");
  UnusedPages found;
  if (query.Step()) {
    constexpr int kIncremental = 2;
    found = {.pages = query.Int(0),
             .unused = query.Int(1),
             .page_size = query.Int(2),
             .incremental = query.Int(3) == kIncremental};
  }
  RETURN_IF_ERROR(query.Run());
  return found;
}

absl::StatusOr<int64_t> SchemaVersion(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(const int64_t application, Number(connection.Query("PRAGMA application_id")));
  ASSIGN_OR_RETURN(const int64_t tables,
                   Number(connection.Query("SELECT count(*) FROM sqlite_schema")));
  if (tables > 0 && application != kApplicationId) {
    return absl::FailedPreconditionError(
        "the database in the data directory was not made by lengthwise_server; choose another "
        "data directory");
  }
  if (tables == 0) return 0;
  ASSIGN_OR_RETURN(const int64_t version,
                   Number(connection.Query("SELECT max(version) FROM schema_migrations")));
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the database has schema version ", version, ", this program knows ",
                     kSchemaVersion, "; use the newer lengthwise_server that wrote it"));
  }
  return version;
}

absl::Status Migrate(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(int64_t version, SchemaVersion(connection));
  if (version == 0) {
    // Not in other cases: even the same value would be written.
    RETURN_IF_ERROR(connection.Execute(
        absl::StrCat("PRAGMA application_id = ", kApplicationId,
                     "; CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, "
                     "apply_time INTEGER NOT NULL)")));
  }
  for (; version < kSchemaVersion; ++version) {
    LENGTHWISE_FAILPOINT_OR_RETURN("storage.migration.before");
    const absl::Status status = connection.Execute(absl::StrCat(
        "BEGIN IMMEDIATE;", kMigrations[version], "INSERT INTO schema_migrations VALUES (",
        version + 1, ", CAST(strftime('%s', 'now') AS INTEGER) * 1000000); COMMIT"));
    if (!status.ok()) {
      if (connection.InTransaction()) connection.Execute("ROLLBACK").IgnoreError();
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DescribeUpgrade(const std::string& path) {
  ASSIGN_OR_RETURN(const auto connection, SqliteConnection::Open(path, /*read_only=*/true));
  ASSIGN_OR_RETURN(const int64_t version, SchemaVersion(*connection));
  if (version == kSchemaVersion) {
    return absl::StrCat(path, " has schema version ", version,
                        ", as this release: its start does not change it");
  }
  return absl::StrCat(path, " has schema version ", version,
                      ": the start of this release upgrades it to ", kSchemaVersion,
                      ", and older releases do not open it from then on; make a backup first");
}

}  // namespace lengthwise::server
