// MemoryStorage: a store in memory with transactions, for simulations and tests. Fast enough for
// millions of events; commits can be made to fail, and the store can be opened again.
#ifndef LENGTHWISE_SERVER_SIMULATION_MEMORY_STORAGE_H_
#define LENGTHWISE_SERVER_SIMULATION_MEMORY_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Actions that undo a transaction, applied last to first.
using Journal = std::vector<std::function<void()>>;

inline constexpr absl::string_view kMemoryStorageName = "the store in memory";

// Rows by key. Changes are recorded in a journal.
template <typename Key, typename Row>
class Table {
 public:
  const Row* Find(const Key& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
  }
  const absl::btree_map<Key, Row>& rows() const { return rows_; }

  void Put(const Key& key, Row row, Journal& journal) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) {
      journal.push_back([this, key] { rows_.erase(key); });
      rows_.emplace(key, std::move(row));
    } else {
      std::swap(found->second, row);
      journal.push_back([this, key, old = std::move(row)] { rows_[key] = old; });
    }
  }
  void Erase(const Key& key, Journal& journal) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) return;
    journal.push_back([this, key, old = std::move(found->second)] { rows_[key] = old; });
    rows_.erase(found);
  }
  // Changes a row in place. `undo` gets the row as `change` left it.
  template <typename Change>
  void Edit(const Key& key, const Change& change, std::function<void(Row&)> undo,
            Journal& journal) {
    change(rows_[key]);
    journal.push_back([this, key, undo = std::move(undo)] { undo(rows_[key]); });
  }

 private:
  absl::btree_map<Key, Row> rows_;
};

struct MemoryData {
  using TrialId = std::pair<std::string, std::string>;  // ids of the experiment and the trial

  Table<std::string, int64_t> counters;  // last key or number assigned, by counter name
  Table<int64_t, ExperimentRecord> experiments;
  Table<std::string, int64_t> experiment_keys;  // by id
  Table<std::string, DeletedRequest> deleted_requests;
  Table<int64_t, PackRecord> packs;
  Table<int64_t, TrialRecord> trials;
  Table<TrialId, int64_t> trial_keys;
  Table<int64_t, LeaseRecord> leases;
  Table<int64_t, SweepRecord> sweeps;
  Table<int64_t, std::vector<EventRecord>> events;  // by trial, in order of position
};

// Not thread-safe. A reader keeps its committed state through later transactions, but sees a
// transaction that is open while it reads.
class MemoryStorage : public Storage {
 public:
  MemoryStorage();
  ~MemoryStorage() override;

  StorageWriter& writer() override;
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override;
  int64_t SizeBytes() const override { return 0; }
  const LeaseKey& lease_key() const override { return lease_key_; }

  // The next commit fails and stores nothing.
  void FailNextCommit();
  // Simulates the death of the server: the open transaction is lost.
  void Crash();

  // The current data, including the open transaction.
  const MemoryData& data() const { return *data_; }

 private:
  class Writer;

  const LeaseKey lease_key_ = {.key = "the key of the store in memory"};
  std::shared_ptr<MemoryData> data_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_MEMORY_STORAGE_H_
