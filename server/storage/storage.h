// Storage: the server's persistent state, records in and records out. One writer, many readers.
//
// Errors of all calls: RESOURCE_EXHAUSTED (disk full), DATA_LOSS (damaged), FAILED_PRECONDITION
// (read-only, cannot be opened), UNAVAILABLE (anything else). Each names the file.
#ifndef LENGTHWISE_SERVER_STORAGE_STORAGE_H_
#define LENGTHWISE_SERVER_STORAGE_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// Reads one consistent state. Not thread-safe: use one per thread.
class StorageReader {
 public:
  virtual ~StorageReader() = default;

  // The store's name in errors: its file.
  virtual absl::string_view name() const = 0;

  // The Find functions return nullopt if there is no such record.
  virtual absl::StatusOr<std::optional<ExperimentRecord>> FindExperiment(absl::string_view id) = 0;
  virtual absl::StatusOr<std::optional<ExperimentRecord>> FindRequest(
      absl::string_view request_id) = 0;
  // The request that created a deleted experiment.
  virtual absl::StatusOr<std::optional<DeletedRequest>> FindDeletedRequest(
      absl::string_view request_id) = 0;
  // Returns true if the id belonged to a deleted experiment.
  virtual absl::StatusOr<bool> WasDeleted(absl::string_view id) = 0;
  virtual absl::StatusOr<std::optional<TrialRecord>> FindTrial(absl::string_view experiment_id,
                                                               absl::string_view trial_id) = 0;
  virtual absl::StatusOr<std::optional<TrialRecord>> FindTrial(int64_t key) = 0;
  virtual absl::StatusOr<std::optional<PackRecord>> FindPack(int64_t key) = 0;
  // Packs of an experiment, in ascending order of key.
  virtual absl::StatusOr<std::vector<PackRecord>> ListPacks(int64_t experiment) = 0;
  // Keys of the experiment's packs, by pack key. Reads no specification.
  virtual absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> PackKeys(
      int64_t experiment) = 0;

  // Newest first: experiments with keys below `before` (0: all) of `owner` (empty: all owners).
  virtual absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(int64_t before,
                                                                        const std::string& owner,
                                                                        int64_t limit) = 0;
  // In the order of the grid, from `first_index` on.
  virtual absl::StatusOr<std::vector<TrialRecord>> ListTrials(int64_t experiment,
                                                              int32_t first_index,
                                                              const TrialFilter& filter,
                                                              int64_t limit) = 0;
  // Keys of the trials in one of the states: RUNNING before QUEUED, then in ascending order.
  virtual absl::StatusOr<std::vector<int64_t>> ListTrialsInStates(
      int64_t experiment, absl::Span<const v1::TrialState> states) = 0;

  // All QUEUED and then all RUNNING trials of all experiments, in ascending order of key.
  virtual absl::Status ForEachUnendedTrial(
      const std::function<void(const TrialRecord&, const TrialPlacement&)>& take) = 0;
  virtual absl::StatusOr<std::vector<LeaseRecord>> ListLeases() = 0;
  // CANCELLED trials whose newest lease is `token`.
  virtual absl::StatusOr<std::vector<int64_t>> ListCancelledTrials(int64_t token) = 0;
  // In ascending order of key, from keys above `after` on.
  virtual absl::StatusOr<std::vector<SweepRecord>> ListSweeps(int64_t after, int64_t limit) = 0;
  // One more than the largest token ever recorded.
  virtual absl::StatusOr<int64_t> NextToken() = 0;

  // Called with an event and its trial's id. Return false to stop.
  using TakeEvent = std::function<bool(const EventRecord&, absl::string_view trial_id)>;
  // Events of an experiment from `start_position` on, in order of position.
  virtual absl::Status ForEachEvent(int64_t experiment, int64_t start_position,
                                    const TakeEvent& take) = 0;
  // Events of a trial from `start_position` on, in order of position.
  virtual absl::Status ForEachTrialEvent(int64_t trial, int64_t start_position,
                                         const TakeEvent& take) = 0;
  // Log lines and changes of state from `start_position` on, in order of position: of the trial
  // unless it is 0, else of the experiment.
  virtual absl::Status ForEachLogEvent(int64_t experiment, int64_t trial, int64_t start_position,
                                       const TakeEvent& take) = 0;
  // Events of one kind, ordered by the trial's index and then by position: of the trial unless it
  // is 0, else of the experiment.
  virtual absl::Status ForEachEventOfKind(int64_t experiment, int64_t trial, int kind,
                                          const TakeEvent& take) = 0;
  // A trial's newest events of a kind, newest first.
  virtual absl::StatusOr<std::vector<EventRecord>> NewestEvents(int64_t trial, int kind,
                                                                int64_t limit) = 0;
  // The largest position ever assigned. 0 if there is none.
  virtual absl::StatusOr<int64_t> LastPosition() = 0;
  // Number of events of a kind that workers sent in an attempt.
  virtual absl::StatusOr<int64_t> CountWorkerEvents(int64_t trial, int32_t attempt, int kind) = 0;
  // Number of an experiment's events at positions `first` to `last`, inclusive.
  virtual absl::StatusOr<int64_t> CountEvents(int64_t experiment, int64_t first, int64_t last) = 0;
  // Total bytes of their payloads. Reads all of them.
  virtual absl::StatusOr<int64_t> EventBytes(int64_t experiment, int64_t first, int64_t last) = 0;
  // Largest sequence number stored for an attempt. 0 if there is none.
  virtual absl::StatusOr<int64_t> LastSequence(int64_t trial, int32_t attempt) = 0;

  // Number of queued and running trials in all experiments of an owner.
  virtual absl::StatusOr<int64_t> CountUnendedTrials(absl::string_view owner) = 0;
  // Sums over all experiments.
  virtual absl::StatusOr<v1::TrialCounts> TotalCounts() = 0;
  // Queue time of the oldest queued trial. NoTime() if none is queued.
  virtual absl::StatusOr<absl::Time> OldestQueued() = 0;
};

// Writes, between Begin and Commit. After the first failure of the store all further calls and the
// Commit fail with that error, and nothing of the transaction is stored.
class StorageWriter : public StorageReader {
 public:
  virtual absl::Status Begin() = 0;
  // OK means durable. Otherwise the transaction was rolled back.
  virtual absl::Status Commit() = 0;

  // Reserves the next id of an experiment of this name. It is not given out again.
  virtual absl::StatusOr<std::string> ReserveExperimentId(absl::string_view name) = 0;
  // Assigns the key, and an id if it has none. `counts.queued` trials, all QUEUED, must follow.
  virtual absl::Status InsertExperiment(ExperimentRecord& experiment) = 0;
  // Stores the specification and adds `added` to the queued trials. The trials, all QUEUED, must
  // follow. Clears the experiment's end time.
  virtual absl::Status ExtendExperiment(const ExperimentRecord& experiment, int32_t added) = 0;
  virtual absl::Status InsertPack(PackRecord& pack) = 0;
  // Assigns ascending keys in the order given.
  virtual absl::Status InsertTrials(absl::Span<TrialRecord> trials) = 0;
  // Stores the fields of a trial that can change, and updates the experiment's counts, which had it
  // in state `previous`. Sets the experiment's end time when its last trial ends, and clears it
  // when an ended trial is queued again.
  virtual absl::Status UpdateTrial(const TrialRecord& trial, v1::TrialState previous) = 0;
  // Assigns the position.
  virtual absl::Status AppendEvent(EventRecord& event) = 0;
  // Deletes the events that workers sent for a trial after a position. Keeps log lines, which
  // explain what went wrong.
  virtual absl::Status DeleteWorkerEvents(int64_t trial, int64_t after_position) = 0;
  virtual absl::Status InsertLease(const LeaseRecord& lease) = 0;
  virtual absl::Status DeleteLease(int64_t token) = 0;
  // Ignores the record's key.
  virtual absl::Status InsertSweep(const SweepRecord& sweep) = 0;
  virtual absl::Status DeleteSweep(int64_t key) = 0;
  // Deletes an experiment with its trials and events. It cannot be found by id from now on; its
  // rows may stay until CleanUp deletes them.
  virtual absl::Status DeleteExperiment(int64_t key) = 0;
  // Called between transactions. Deletes a bounded number of rows of deleted experiments, or, if
  // there are none, returns a bounded amount of unused space to the file system. Runs in a
  // transaction of its own, for a few milliseconds. Keeps space that is likely to be used again
  // soon. True if there is more to do.
  virtual absl::StatusOr<bool> CleanUp() = 0;
  // Keeps the request_id of a deleted experiment, which must not be empty.
  virtual absl::Status InsertDeletedRequest(const ExperimentRecord& experiment) = 0;
  // True if the transaction has changed something.
  virtual bool HasChanges() const = 0;
};

// Thread-safe, except for the writer.
class Storage {
 public:
  virtual ~Storage() = default;
  // The only writer. For use by one thread.
  virtual StorageWriter& writer() = 0;
  // A snapshot of the committed state. Release promptly: it pins a database snapshot.
  virtual absl::StatusOr<std::unique_ptr<StorageReader>> Read() = 0;
  virtual int64_t SizeBytes() const = 0;
  virtual const LeaseKey& lease_key() const = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_STORAGE_H_
