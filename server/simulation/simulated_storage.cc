#include "server/simulation/simulated_storage.h"

#include <utility>

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

std::vector<SimulatedStorage::Unended> SimulatedStorage::UnendedTrials() {
  std::vector<Unended> unended;
  StopUnless(
      writer_->ForEachUnendedTrial([&](const TrialRecord& trial, const TrialPlacement& placement) {
        unended.push_back({trial, placement});
      }));
  return unended;
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
  std::vector<EventRecord> events;
  StopUnless(writer_->ForEachTrialEvent(trial, start_position,
                                        [&](const EventRecord& event, absl::string_view) {
                                          events.push_back(event);
                                          return true;
                                        }));
  return events;
}

}  // namespace lengthwise::server
