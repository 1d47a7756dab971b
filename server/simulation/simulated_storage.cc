#include "server/simulation/simulated_storage.h"

#include <utility>

#include "proto/trial_counts.h"
#include "server/storage/sqlite_schema.h"
#include "server/storage/sqlite_storage.h"

namespace lengthwise::server {
namespace {

void StopUnless(const absl::Status& status) {
  if (!status.ok()) StopProcess(status);
}

}  // namespace

absl::Status SimulatedStorage::Writer::Commit() {
  if (!std::exchange(fails, false)) return StorageWriter::Commit();
  // Has the counts written that are collected until the commit, so that none is left.
  StopUnless(TotalCounts().status());
  StopUnless(connection_.Query("ROLLBACK").Run());
  return absl::UnavailableError("the disk failed");
}

SimulatedStorage::SimulatedStorage() {
  auto connection = SqliteConnection::Open(":memory:", /*read_only=*/false);
  StopUnless(connection.status());
  connection_ = *std::move(connection);
  StopUnless(connection_->Execute("PRAGMA foreign_keys = ON"));
  StopUnless(Migrate(*connection_));
  writer_ = std::make_unique<Writer>(*connection_, /*epoch=*/0, StopProcess);
}

absl::StatusOr<std::unique_ptr<StorageReader>> SimulatedStorage::Read() {
  return std::make_unique<StorageReader>(*connection_);
}

void SimulatedStorage::Crash() {
  if (connection_->InTransaction()) StopUnless(connection_->Query("ROLLBACK").Run());
  writer_ = std::make_unique<Writer>(*connection_, /*epoch=*/0, StopProcess);
}

std::vector<TrialRecord> SimulatedStorage::UnendedTrials() {
  std::vector<TrialRecord> unended;
  StopUnless(writer_->ForEachUnendedTrial(
      [&](const TrialRecord& trial, const TrialPlacement&) { unended.push_back(trial); }));
  return unended;
}

// The literals in the queries below: partial indexes have these trials.
static_assert(v1::QUEUED == 1 && v1::RUNNING == 2);

int64_t SimulatedStorage::CountUnendedTrials() {
  const absl::StatusOr<int64_t> count =
      Number(connection_->Query("SELECT (SELECT count(*) FROM trials WHERE state = 1) + "
                                "(SELECT count(*) FROM trials WHERE state = 2)"));
  StopUnless(count.status());
  return *count;
}

v1::TrialCounts SimulatedStorage::CountTrials(int64_t experiment) {
  SqliteStatement query = connection_->Query(
      "SELECT state, count(*) FROM trials WHERE experiment = ?1 GROUP BY state", experiment);
  v1::TrialCounts counts;
  while (query.Step()) {
    v1::TrialState state = v1::TRIAL_STATE_UNSPECIFIED;
    int32_t trials = 0;
    query.Read(state, trials);
    lengthwise::CountTrials(state, trials, counts);
  }
  StopUnless(query.status());
  return counts;
}

std::map<int32_t, std::set<std::string>> SimulatedStorage::WaitingOwners(absl::Time now) {
  SqliteStatement query = connection_->Query(
      "SELECT DISTINCT x.priority, x.owner FROM trials t JOIN experiments x ON x.key = "
      "t.experiment WHERE t.state = 1 AND t.not_before <= ?1",
      now);
  std::map<int32_t, std::set<std::string>> owners;
  while (query.Step()) owners[static_cast<int32_t>(query.Int(0))].insert(query.String(1));
  StopUnless(query.status());
  return owners;
}

std::map<std::string, int64_t> SimulatedStorage::RunningTrialsByOwner() {
  SqliteStatement query = connection_->Query(
      "SELECT x.owner, count(*) FROM trials t JOIN experiments x ON x.key = t.experiment "
      "WHERE t.state = 2 GROUP BY x.owner");
  std::map<std::string, int64_t> counts;
  while (query.Step()) counts[query.String(0)] = query.Int(1);
  StopUnless(query.status());
  return counts;
}

std::optional<LeaseRecord> SimulatedStorage::FindLease(int64_t token) {
  SqliteStatement query =
      connection_->Query("SELECT worker, size FROM leases WHERE token = ?1", token);
  std::optional<LeaseRecord> found;
  if (query.Step()) {
    found = {.token = token, .worker = query.String(0), .size = static_cast<int32_t>(query.Int(1))};
  }
  StopUnless(query.status());
  return found;
}

std::vector<EventRecord> SimulatedStorage::Events(int64_t trial, int64_t start_position) {
  // Trials here have few events: sorting them takes less than the server's query, which need not
  // sort.
  SqliteStatement query = connection_->Query(
      "SELECT position, experiment, attempt, sequence, step, kind, payload FROM events "
      "WHERE trial = ?1 AND position >= ?2 ORDER BY position",
      trial, start_position);
  std::vector<EventRecord> events;
  while (query.Step()) {
    EventRecord& event = events.emplace_back();
    event.trial = trial;
    query.Read(event.position, event.experiment, event.attempt, event.sequence, event.step,
               event.kind, event.payload);
  }
  StopUnless(query.status());
  return events;
}

}  // namespace lengthwise::server
