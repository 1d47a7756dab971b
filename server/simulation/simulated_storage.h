// SimulatedStorage: the store in SQLite, but in memory. Commits can be made to fail, and the store
// survives the server.
#ifndef LENGTHWISE_SERVER_SIMULATION_SIMULATED_STORAGE_H_
#define LENGTHWISE_SERVER_SIMULATION_SIMULATED_STORAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// For one thread. Readers see an open transaction.
class SimulatedStorage : public Storage {
 public:
  SimulatedStorage();

  StorageWriter& writer() override { return *writer_; }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override;
  int64_t SizeBytes() const override { return 0; }
  const LeaseKey& lease_key() const override { return lease_key_; }

  // The next commit fails and stores nothing.
  void FailNextCommit() { writer_->fails = true; }
  // Simulates the death of the server: the open transaction is lost.
  void Crash();

  // Reads for checks. They end the process if the store fails, which it does not in memory.
  std::vector<TrialRecord> UnendedTrials();
  int64_t CountUnendedTrials();
  v1::TrialCounts CountTrials(int64_t experiment);
  // Those with trials that may be leased at `now`, by priority.
  std::map<int32_t, std::set<std::string>> WaitingOwners(absl::Time now);
  std::map<std::string, int64_t> RunningTrialsByOwner();
  std::optional<LeaseRecord> FindLease(int64_t token);
  // In order of position, from `start_position` on.
  std::vector<EventRecord> Events(int64_t trial, int64_t start_position);

 private:
  class Writer : public StorageWriter {
   public:
    using StorageWriter::StorageWriter;
    absl::Status Commit() override;
    bool fails = false;
  };

  const LeaseKey lease_key_ = {.key = "the key of the simulation"};
  std::unique_ptr<SqliteConnection> connection_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_SIMULATED_STORAGE_H_
