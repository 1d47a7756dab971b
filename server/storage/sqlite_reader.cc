// Implements StorageReader of storage.h.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "platform/status_macros.h"
#include "proto/event.pb.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"
#include "server/storage/storage.h"

namespace lengthwise::server {
namespace {

#define LENGTHWISE_EXPERIMENT_COLUMNS                                                            \
  "SELECT key, id, name, coalesce(request_id, ''), request_fingerprint, owner, priority, "       \
  "specification, source, create_time, end_time, queued, running, succeeded, failed, cancelled " \
  "FROM experiments "

v1::TrialCounts ReadCounts(const SqliteStatement& row, int first_column) {
  v1::TrialCounts counts;
  counts.set_queued(row.Int(first_column));
  counts.set_running(row.Int(first_column + 1));
  counts.set_succeeded(row.Int(first_column + 2));
  counts.set_failed(row.Int(first_column + 3));
  counts.set_cancelled(row.Int(first_column + 4));
  return counts;
}

ExperimentRecord ReadExperiment(const SqliteStatement& row) {
  ExperimentRecord record;
  row.Read(record.key, record.id, record.name, record.request_id, record.request_fingerprint,
           record.owner, record.priority, record.specification, record.source, record.create_time,
           record.end_time);
  record.counts = ReadCounts(row, 11);
  return record;
}

#define LENGTHWISE_TRIAL_COLUMNS                                                             \
  "SELECT t.key, t.experiment, x.id, t.idx, t.id, t.pack, t.learning_rate, t.weight_seed, "  \
  "t.data_seed, t.state, t.reason, t.attempt, t.failures, t.not_before, t.worker, t.token, " \
  "t.checkpoint_step, x.create_time, t.start_time, t.end_time, t.outcome, t.failure, "       \
  "t.failure_step, t.preemptions, t.pack_limit, t.queue_time, t.losses "

TrialRecord ReadTrial(const SqliteStatement& row) {
  TrialRecord record;
  row.Read(record.key, record.experiment, record.experiment_id, record.index, record.id,
           record.pack, record.learning_rate, record.weight_seed, record.data_seed, record.state,
           record.reason, record.attempt, record.failures, record.not_before, record.worker,
           record.token, record.checkpoint_step, record.create_time, record.start_time,
           record.end_time, record.outcome, record.failure, record.failure_step, record.preemptions,
           record.pack_limit, record.queue_time, record.losses);
  return record;
}

#define LENGTHWISE_PACK_COLUMNS                                             \
  "SELECT p.key, p.experiment, p.pack_key, "                                \
  "ifnull(s.specification, CASE p.shared WHEN 0 THEN x'' ELSE x'00' END), " \
  "p.task, p.network, p.encoding, p.specification "                         \
  "FROM packs p LEFT JOIN shared s ON s.key = p.shared "

// A byte that begins no message stands for what should be shared and is missing.
PackRecord ReadPack(const SqliteStatement& row) {
  PackRecord record;
  row.Read(record.key, record.experiment, record.pack_key, record.specification, record.task,
           record.network, record.encoding);
  // Two serialized messages, one behind the other, are that of both.
  absl::StrAppend(&record.specification, row.Bytes(7));
  return record;
}

#define LENGTHWISE_EVENT_COLUMNS                                                      \
  "SELECT e.position, e.experiment, e.trial, e.attempt, e.sequence, e.step, e.kind, " \
  "e.payload, t.id "

EventRecord ReadEvent(const SqliteStatement& row) {
  EventRecord record;
  row.Read(record.position, record.experiment, record.trial, record.attempt, record.sequence,
           record.step, record.kind, record.payload);
  return record;
}

absl::Status TakeEvents(SqliteStatement& query, const StorageReader::TakeEvent& take) {
  while (query.Step()) {
    if (!take(ReadEvent(query), query.Bytes(8))) break;
  }
  return query.status();
}

// States are literals in SQL, not parameters: SQLite uses a partial index (trials_queued, ...) only
// if the literal of its condition is in the query.
#define LENGTHWISE_QUEUED "1"
#define LENGTHWISE_RUNNING "2"
#define LENGTHWISE_CANCELLED "5"
static_assert(v1::QUEUED == 1 && v1::RUNNING == 2 && v1::CANCELLED == 5,
              "the literals above are the values of v1::TrialState");

// Trials with their placement. The literal of a state and an order follow.
#define LENGTHWISE_PLACED_TRIALS                                                \
  LENGTHWISE_TRIAL_COLUMNS                                                      \
  ", x.priority, x.owner, p.pack_key, "                                         \
  "length(p.specification) + ifnull(length(s.specification), 0) FROM trials t " \
  "JOIN experiments x ON x.key = t.experiment "                                 \
  "JOIN packs p ON p.key = t.pack "                                             \
  "LEFT JOIN shared s ON s.key = p.shared WHERE t.state = "

// The kinds of events in a log.
constexpr int kLogKinds[] = {v1::Event::kStateChange, v1::Event::kLogLine};

// A query of a trial's (?1) events of some kinds from a position (?2) on. Each kind is a branch:
// the index (trial, kind) returns it in order of position, and SQLite merges the branches without
// sorting.
std::string TrialEventsOfKinds(absl::Span<const int> kinds) {
  std::vector<std::string> branches;
  for (const int kind : kinds) {
    branches.push_back(
        absl::StrCat("SELECT position, experiment, trial, attempt, sequence, step, kind, payload, "
                     "(SELECT id FROM trials WHERE key = ?1) FROM events WHERE trial = ?1 "
                     "AND kind = ",
                     kind, " AND position >= ?2 "));
  }
  return absl::StrCat(absl::StrJoin(branches, "UNION ALL "), "ORDER BY position");
}

// All kinds of facts that an event can have.
std::vector<int> AllKinds() {
  std::vector<int> kinds;
  const auto& facts = *v1::Event::descriptor()->FindOneofByName("fact");
  for (int i = 0; i < facts.field_count(); ++i) kinds.push_back(facts.field(i)->number());
  return kinds;
}

template <typename T, typename Read>
absl::StatusOr<std::optional<T>> First(SqliteStatement query, Read read) {
  std::optional<T> record;
  if (query.Step()) record = read(query);
  RETURN_IF_ERROR(query.status());
  return record;
}

template <typename T, typename Read>
absl::StatusOr<std::vector<T>> All(SqliteStatement query, Read read) {
  std::vector<T> records;
  while (query.Step()) records.push_back(read(query));
  RETURN_IF_ERROR(query.status());
  return records;
}

int64_t ReadKey(const SqliteStatement& row) { return row.Int(0); }

}  // namespace

absl::string_view StorageReader::name() const { return connection_.path(); }

absl::StatusOr<std::optional<ExperimentRecord>> StorageReader::FindExperiment(
    absl::string_view id) {
  RETURN_IF_ERROR(StoreCounts());
  return First<ExperimentRecord>(
      connection_.Query(LENGTHWISE_EXPERIMENT_COLUMNS "WHERE id = ?1", id), ReadExperiment);
}

absl::StatusOr<std::optional<KnownRequest>> StorageReader::FindRequest(
    absl::string_view request_id) {
  return First<KnownRequest>(
      connection_.Query("SELECT id, request_fingerprint, 0 FROM experiments WHERE request_id = ?1 "
                        "UNION ALL SELECT experiment_id, request_fingerprint, 1 "
                        "FROM deleted_requests WHERE request_id = ?1",
                        request_id),
      [](const SqliteStatement& row) {
        return KnownRequest{.experiment_id = row.String(0),
                            .fingerprint = row.String(1),
                            .is_deleted = row.Int(2) != 0};
      });
}

absl::StatusOr<bool> StorageReader::WasDeleted(absl::string_view id) {
  const size_t dash = id.rfind('-');
  if (dash == absl::string_view::npos) return false;
  // "<number>" or "<number>.<tag>".
  const absl::string_view given = id.substr(dash + 1);
  const size_t dot = given.find('.');
  const absl::string_view tag = dot == absl::string_view::npos ? "" : given.substr(dot + 1);
  int64_t number = 0;
  if (!absl::SimpleAtoi(given.substr(0, dot), &number)) return false;
  // Numbers of a name are assigned in turn and never reused.
  ASSIGN_OR_RETURN(
      const int64_t count,
      Number(connection_.Query("SELECT count(*) FROM experiment_names WHERE name = ?1 "
                               "AND ?2 BETWEEN 1 AND last_number "
                               "AND (?4 = '' OR EXISTS (SELECT 1 FROM restores WHERE tag = ?4)) "
                               "AND NOT EXISTS (SELECT 1 FROM experiments WHERE id = ?3)",
                               id.substr(0, dash), number, id, tag)));
  return count > 0;
}

absl::StatusOr<std::optional<TrialRecord>> StorageReader::FindTrial(absl::string_view experiment_id,
                                                                    absl::string_view trial_id) {
  return First<TrialRecord>(
      connection_.Query(LENGTHWISE_TRIAL_COLUMNS
                        "FROM experiments x JOIN trials t ON t.experiment = x.key "
                        "WHERE x.id = ?1 AND t.id = ?2",
                        experiment_id, trial_id),
      ReadTrial);
}

absl::StatusOr<std::optional<TrialRecord>> StorageReader::FindTrial(int64_t key) {
  return First<TrialRecord>(
      connection_.Query(LENGTHWISE_TRIAL_COLUMNS
                        "FROM trials t JOIN experiments x ON x.key = t.experiment "
                        "WHERE t.key = ?1 AND substr(x.id, 1, 1) <> '" LENGTHWISE_DELETED "'",
                        key),
      ReadTrial);
}

absl::StatusOr<std::optional<PackRecord>> StorageReader::FindPack(int64_t key) {
  return First<PackRecord>(connection_.Query(LENGTHWISE_PACK_COLUMNS "WHERE p.key = ?1", key),
                           ReadPack);
}

absl::StatusOr<std::vector<PackRecord>> StorageReader::ListPacks(int64_t experiment) {
  return All<PackRecord>(
      connection_.Query(LENGTHWISE_PACK_COLUMNS "WHERE p.experiment = ?1 ORDER BY p.key",
                        experiment),
      ReadPack);
}

absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> StorageReader::PackKeys(
    int64_t experiment) {
  absl::flat_hash_map<std::string, int64_t> keys;
  SqliteStatement query =
      connection_.Query("SELECT pack_key, key FROM packs WHERE experiment = ?1", experiment);
  while (query.Step()) keys.emplace(query.String(0), query.Int(1));
  RETURN_IF_ERROR(query.status());
  return keys;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
StorageReader::ListExperimentIds() {
  return All<std::pair<std::string, std::string>>(
      connection_.Query("SELECT id, name FROM experiments "
                        "WHERE substr(id, 1, 1) <> '" LENGTHWISE_DELETED "' ORDER BY key DESC"),
      [](const SqliteStatement& row) { return std::pair(row.String(0), row.String(1)); });
}

absl::StatusOr<std::vector<ExperimentRecord>> StorageReader::ListExperiments(
    int64_t before, const std::string& owner, int64_t limit) {
  RETURN_IF_ERROR(StoreCounts());
  const int64_t bound = before > 0 ? before : INT64_MAX;
  return All<ExperimentRecord>(connection_.Query(LENGTHWISE_EXPERIMENT_COLUMNS
                                                 "WHERE key < ?1 AND (?2 = '' OR owner = ?2) "
                                                 "AND substr(id, 1, 1) <> '" LENGTHWISE_DELETED "' "
                                                 "ORDER BY key DESC LIMIT ?3",
                                                 bound, owner, limit),
                               ReadExperiment);
}

absl::StatusOr<std::vector<std::string>> StorageReader::ListTrialIds(int64_t experiment) {
  return All<std::string>(
      connection_.Query("SELECT id FROM trials WHERE experiment = ?1 ORDER BY idx", experiment),
      [](const SqliteStatement& row) { return row.String(0); });
}

absl::StatusOr<std::vector<TrialRecord>> StorageReader::ListTrials(int64_t experiment,
                                                                   int32_t first_index,
                                                                   const TrialFilter& filter,
                                                                   int64_t limit) {
  return All<TrialRecord>(
      connection_.Query(LENGTHWISE_TRIAL_COLUMNS
                        "FROM trials t JOIN experiments x ON x.key = t.experiment "
                        "JOIN packs p ON p.key = t.pack "
                        "WHERE t.experiment = ?1 AND t.idx >= ?2 "
                        "AND (?3 = 0 OR t.state = ?3) AND (?4 = '' OR p.task = ?4) "
                        "AND (?5 = '' OR p.network = ?5) AND (?6 = '' OR p.encoding = ?6) "
                        "ORDER BY t.idx LIMIT ?7",
                        experiment, first_index, filter.state, filter.task, filter.network,
                        filter.encoding, limit),
      ReadTrial);
}

absl::StatusOr<std::vector<int64_t>> StorageReader::ListTrialsInStates(
    int64_t experiment, absl::Span<const v1::TrialState> states) {
  int64_t wanted = 0;  // one bit per state
  for (const v1::TrialState state : states) wanted |= int64_t{1} << state;
  return All<int64_t>(
      connection_.Query("SELECT key FROM trials WHERE experiment = ?1 AND (?2 >> state) & 1 "
                        "ORDER BY state DESC, key",
                        experiment, wanted),
      ReadKey);
}

absl::StatusOr<int64_t> StorageReader::FindExpired(int64_t first, absl::Time now,
                                                   absl::Duration retention) {
  RETURN_IF_ERROR(StoreCounts());
  // Without a row the number is 0.
  return Number(connection_.Query(
      "SELECT key FROM (SELECT key, id, end_time, expired_end, "
      "CASE retention WHEN 0 THEN ?3 ELSE retention END AS kept FROM experiments WHERE key >= ?1) "
      "WHERE kept > 0 AND end_time > 0 AND end_time <> expired_end AND end_time + kept <= ?2 "
      "AND substr(id, 1, 1) <> '" LENGTHWISE_DELETED "' ORDER BY key LIMIT 1",
      first, now, absl::ToInt64Microseconds(retention)));
}

absl::StatusOr<std::vector<int64_t>> StorageReader::ListTrialsWithArtifacts(int64_t experiment,
                                                                            int32_t first_index,
                                                                            int64_t limit) {
  return All<int64_t>(
      connection_.Query("SELECT key FROM trials t WHERE experiment = ?1 AND idx >= ?2 "
                        "AND (checkpoint_step > 0 OR EXISTS (SELECT 1 FROM events e "
                        "WHERE e.trial = t.key AND e.kind IN (?3, ?4))) ORDER BY idx LIMIT ?5",
                        experiment, first_index, static_cast<int>(v1::Event::kAttentionMap),
                        static_cast<int>(v1::Event::kProjection), limit),
      ReadKey);
}

absl::Status StorageReader::ForEachUnendedTrial(
    const std::function<void(const TrialRecord&, const TrialPlacement&)>& take) {
  for (const char* sql : {LENGTHWISE_PLACED_TRIALS LENGTHWISE_QUEUED " ORDER BY t.key",
                          LENGTHWISE_PLACED_TRIALS LENGTHWISE_RUNNING " ORDER BY t.key"}) {
    SqliteStatement query = connection_.Query(sql);
    while (query.Step()) {
      take(ReadTrial(query), {.priority = static_cast<int32_t>(query.Int(27)),
                              .owner = query.String(28),
                              .pack_key = query.String(29),
                              .pack_bytes = query.Int(30)});
    }
    RETURN_IF_ERROR(query.status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LeaseRecord>> StorageReader::ListLeases() {
  return All<LeaseRecord>(
      connection_.Query("SELECT token, worker, grant_time, size FROM leases ORDER BY token"),
      [](const SqliteStatement& row) {
        LeaseRecord record;
        row.Read(record.token, record.worker, record.grant_time, record.size);
        return record;
      });
}

absl::StatusOr<std::vector<HoldRecord>> StorageReader::ListHolds() {
  return All<HoldRecord>(connection_.Query("SELECT worker, why FROM holds ORDER BY worker"),
                         [](const SqliteStatement& row) -> HoldRecord {
                           return {.worker = row.String(0), .why = row.String(1)};
                         });
}

absl::StatusOr<std::vector<v1::OwnerUsage>> StorageReader::ListUsage(absl::Time now) {
  return All<v1::OwnerUsage>(
      connection_.Query(
          "SELECT owner, sum(trials), sum(steps), sum(worker_time) FROM ("
          "SELECT owner, trials, steps, worker_time FROM usage UNION ALL "
          "SELECT owner, 0, 0, max(0, ?1 - grant_time) FROM leases WHERE owner <> '') "
          "GROUP BY owner",
          now),
      [](const SqliteStatement& row) {
        v1::OwnerUsage usage;
        usage.set_owner(row.String(0));
        usage.set_trials(row.Int(1));
        usage.set_steps(row.Int(2));
        usage.set_worker_seconds(static_cast<double>(row.Int(3)) * 1e-6);
        return usage;
      });
}

absl::StatusOr<std::vector<int64_t>> StorageReader::ListCancelledTrials(int64_t token) {
  return All<int64_t>(connection_.Query("SELECT key FROM trials WHERE state = " LENGTHWISE_CANCELLED
                                        " AND token > 0 AND token = ?1 ORDER BY key",
                                        token),
                      ReadKey);
}

absl::StatusOr<std::vector<SweepRecord>> StorageReader::ListSweeps(int64_t after, int64_t limit) {
  return All<SweepRecord>(
      connection_.Query("SELECT key, experiment, trial, sha256, attempt FROM sweeps "
                        "WHERE key > ?1 ORDER BY key LIMIT ?2",
                        after, limit),
      [](const SqliteStatement& row) {
        SweepRecord record;
        row.Read(record.key, record.experiment, record.trial, record.sha256, record.attempt);
        return record;
      });
}

absl::StatusOr<int64_t> StorageReader::NextToken() {
  // sqlite_sequence keeps the largest token of leases that have ended, so no token is used twice.
  return Number(connection_.Query(
      "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'leases'), 0) + 1"));
}

absl::Status StorageReader::ForEachEvent(int64_t experiment, int64_t trial, int64_t start_position,
                                         bool log_only, const StorageReader::TakeEvent& take) {
  static const std::string& of_trial = *new std::string(TrialEventsOfKinds(AllKinds()));
  static const std::string& log_of_trial = *new std::string(TrialEventsOfKinds(kLogKinds));
  static const std::string& of_experiment =
      *new std::string(LENGTHWISE_EVENT_COLUMNS
                       "FROM events e JOIN trials t ON t.key = e.trial "
                       "WHERE e.experiment = ?1 AND e.position >= ?2 ORDER BY e.position");
  // The plus keeps SQLite from the index on kinds, after which it would have to sort all events.
  static const std::string& log_of_experiment =
      *new std::string(absl::StrCat(LENGTHWISE_EVENT_COLUMNS
                                    "FROM events e JOIN trials t ON t.key = e.trial "
                                    "WHERE e.experiment = ?1 AND e.position >= ?2 AND +e.kind IN (",
                                    absl::StrJoin(kLogKinds, ", "), ") ORDER BY e.position"));
  const std::string& sql = log_only ? (trial > 0 ? log_of_trial : log_of_experiment)
                                    : (trial > 0 ? of_trial : of_experiment);
  SqliteStatement query =
      connection_.Query(sql.c_str(), trial > 0 ? trial : experiment, start_position);
  return TakeEvents(query, take);
}

absl::Status StorageReader::ForEachEventOfKind(int64_t experiment, int64_t trial, int kind,
                                               const StorageReader::TakeEvent& take) {
  // CROSS JOIN fixes the order of the loops, and with it the order of the result, without sorting.
  SqliteStatement query =
      trial > 0 ? connection_.Query(LENGTHWISE_EVENT_COLUMNS
                                    "FROM trials t CROSS JOIN events e ON e.trial = t.key "
                                    "WHERE t.key = ?1 AND e.kind = ?2 ORDER BY e.position",
                                    trial, kind)
                : connection_.Query(LENGTHWISE_EVENT_COLUMNS
                                    "FROM trials t CROSS JOIN events e ON e.trial = t.key "
                                    "WHERE t.experiment = ?1 AND e.kind = ?2 "
                                    "ORDER BY t.idx, e.position",
                                    experiment, kind);
  return TakeEvents(query, take);
}

absl::StatusOr<std::vector<EventRecord>> StorageReader::NewestEvents(int64_t trial, int kind,
                                                                     int64_t limit) {
  return All<EventRecord>(
      connection_.Query(LENGTHWISE_EVENT_COLUMNS
                        "FROM events e JOIN trials t ON t.key = e.trial "
                        "WHERE e.trial = ?1 AND e.kind = ?2 ORDER BY e.position DESC LIMIT ?3",
                        trial, kind, limit),
      ReadEvent);
}

absl::StatusOr<int64_t> StorageReader::LastPosition() {
  // As in NextToken.
  return Number(connection_.Query(
      "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)"));
}

absl::StatusOr<int64_t> StorageReader::CountWorkerEvents(int64_t trial, int32_t attempt, int kind) {
  return Number(
      connection_.Query("SELECT count(*) FROM events WHERE trial = ?1 AND kind = ?2 "
                        "AND attempt = ?3 AND sequence > 0",
                        trial, kind, attempt));
}

absl::StatusOr<int64_t> StorageReader::CountEvents(int64_t experiment, int64_t first,
                                                   int64_t last) {
  return Number(
      connection_.Query("SELECT count(*) FROM events WHERE experiment = ?1 "
                        "AND position BETWEEN ?2 AND ?3",
                        experiment, first, last));
}

absl::StatusOr<int64_t> StorageReader::EventBytes(int64_t experiment, int64_t first, int64_t last) {
  return Number(
      connection_.Query("SELECT coalesce(sum(length(payload)), 0) FROM events "
                        "WHERE experiment = ?1 AND position BETWEEN ?2 AND ?3",
                        experiment, first, last));
}

absl::StatusOr<int64_t> StorageReader::LastSequence(int64_t trial, int32_t attempt) {
  return Number(
      connection_.Query("SELECT coalesce(max(sequence), 0) FROM events "
                        "WHERE trial = ?1 AND attempt = ?2 AND sequence > 0",
                        trial, attempt));
}

absl::StatusOr<int64_t> StorageReader::CountUnendedTrials(absl::string_view owner) {
  RETURN_IF_ERROR(StoreCounts());
  return Number(connection_.Query(
      "SELECT coalesce(sum(queued + running), 0) FROM experiments WHERE owner = ?1", owner));
}

absl::StatusOr<v1::TrialCounts> StorageReader::TotalCounts() {
  RETURN_IF_ERROR(StoreCounts());
  SqliteStatement query = connection_.Query(
      "SELECT coalesce(sum(queued), 0), coalesce(sum(running), 0), coalesce(sum(succeeded), 0), "
      "coalesce(sum(failed), 0), coalesce(sum(cancelled), 0) FROM experiments");
  v1::TrialCounts counts;
  if (query.Step()) counts = ReadCounts(query, 0);
  RETURN_IF_ERROR(query.status());
  return counts;
}

absl::StatusOr<absl::Time> StorageReader::OldestQueued() {
  // Without a row the number is 0, the NoTime() of the store.
  ASSIGN_OR_RETURN(
      const int64_t time,
      Number(connection_.Query("SELECT queue_time FROM trials WHERE state = " LENGTHWISE_QUEUED
                               " ORDER BY queue_time LIMIT 1")));
  return absl::FromUnixMicros(time);
}

}  // namespace lengthwise::server
