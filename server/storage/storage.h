// Where the server's state lives: records in, records out. One writer, many readers.
//
// Errors of all calls: RESOURCE_EXHAUSTED (disk full), DATA_LOSS (damaged), FAILED_PRECONDITION
// (read-only, cannot be opened), UNAVAILABLE (otherwise); each names the file.
#ifndef LENGTHWISE_SERVER_STORAGE_STORAGE_H_
#define LENGTHWISE_SERVER_STORAGE_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// Reads of one consistent state. Not thread-safe; each thread has its own.
class StorageReader {
 public:
  virtual ~StorageReader() = default;

  // What errors call the store: its file.
  virtual absl::string_view name() const = 0;

  // Find... return nullopt for what is not there.
  virtual absl::StatusOr<std::optional<ExperimentRecord>> FindExperiment(absl::string_view id) = 0;
  virtual absl::StatusOr<std::optional<ExperimentRecord>> FindRequest(
      absl::string_view request_id) = 0;
  // The deleted experiment's that the request created.
  virtual absl::StatusOr<std::optional<DeletedRequest>> FindDeletedRequest(
      absl::string_view request_id) = 0;
  // Whether there was an experiment with this id, which was deleted.
  virtual absl::StatusOr<bool> WasDeleted(absl::string_view id) = 0;
  virtual absl::StatusOr<std::optional<TrialRecord>> FindTrial(absl::string_view experiment_id,
                                                               absl::string_view trial_id) = 0;
  virtual absl::StatusOr<std::optional<TrialRecord>> FindTrial(int64_t key) = 0;
  virtual absl::StatusOr<std::optional<PackRecord>> FindPack(int64_t key) = 0;
  // Of an experiment, keys ascending.
  virtual absl::StatusOr<std::vector<PackRecord>> ListPacks(int64_t experiment) = 0;

  // Newest first: keys below `before` (0: all), of `owner` (empty: of all).
  virtual absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(int64_t before,
                                                                        const std::string& owner,
                                                                        int64_t limit) = 0;
  // In the order of the grid, from an index on.
  virtual absl::StatusOr<std::vector<TrialRecord>> ListTrials(int64_t experiment,
                                                              int32_t first_index,
                                                              const TrialFilter& filter,
                                                              int64_t limit) = 0;
  // Keys of the trials that are in one of the states: RUNNING ones before QUEUED ones, then
  // ascending.
  virtual absl::StatusOr<std::vector<int64_t>> ListTrialsInStates(
      int64_t experiment, absl::Span<const v1::TrialState> states) = 0;

  // All QUEUED and then all RUNNING trials of all experiments, keys ascending.
  virtual absl::Status ForEachUnendedTrial(
      const std::function<void(const TrialRecord&, const TrialPlacement&)>& take) = 0;
  virtual absl::StatusOr<std::vector<LeaseRecord>> ListLeases() = 0;
  // CANCELLED trials whose newest lease is this one.
  virtual absl::StatusOr<std::vector<int64_t>> ListCancelledTrials(int64_t token) = 0;
  // One more than any token ever recorded.
  virtual absl::StatusOr<int64_t> NextToken() = 0;

  // Called with an event and its trial's id; reading ends when it returns false.
  using TakeEvent = std::function<bool(const EventRecord&, absl::string_view trial_id)>;
  // Events of an experiment, positions ascending, from one on.
  virtual absl::Status ForEachEvent(int64_t experiment, int64_t start_position,
                                    const TakeEvent& take) = 0;
  // Events of a trial, positions ascending, from one on.
  virtual absl::Status ForEachTrialEvent(int64_t trial, int64_t start_position,
                                         const TakeEvent& take) = 0;
  // Log lines and changes of state, positions ascending, from one on; of one trial where it is not
  // 0, else of the experiment.
  virtual absl::Status ForEachLogEvent(int64_t experiment, int64_t trial, int64_t start_position,
                                       const TakeEvent& take) = 0;
  // Events of one kind, by the trials' index and then position; of one trial where it is not 0.
  virtual absl::Status ForEachEventOfKind(int64_t experiment, int64_t trial, int kind,
                                          const TakeEvent& take) = 0;
  // The newest events of a kind of a trial, newest first.
  virtual absl::StatusOr<std::vector<EventRecord>> NewestEvents(int64_t trial, int kind,
                                                                int64_t limit) = 0;
  // The largest position ever given; 0 for none.
  virtual absl::StatusOr<int64_t> LastPosition() = 0;
  // Events of a kind that a worker has sent in an attempt.
  virtual absl::StatusOr<int64_t> CountWorkerEvents(int64_t trial, int32_t attempt, int kind) = 0;
  // Events of an experiment at positions from `first` up to `last`.
  virtual absl::StatusOr<int64_t> CountEvents(int64_t experiment, int64_t first, int64_t last) = 0;
  // What their payloads have together, bytes. Reads them all.
  virtual absl::StatusOr<int64_t> EventBytes(int64_t experiment, int64_t first, int64_t last) = 0;
  // Largest sequence number stored of an attempt; 0 for none.
  virtual absl::StatusOr<int64_t> LastSequence(int64_t trial, int32_t attempt) = 0;

  // Queued and running trials of all experiments of an owner.
  virtual absl::StatusOr<int64_t> CountUnendedTrials(absl::string_view owner) = 0;
  // Over all experiments.
  virtual absl::StatusOr<v1::TrialCounts> TotalCounts() = 0;
  // When the trial was queued that has been so for longest; NoTime() when none is queued.
  virtual absl::StatusOr<absl::Time> OldestQueued() = 0;
};

// Writes between Begin and Commit. The first failure of the store makes all further calls and the
// Commit fail with it; nothing of the transaction is stored then.
class StorageWriter : public StorageReader {
 public:
  virtual absl::Status Begin() = 0;
  // Durable when it returns OK. Otherwise the transaction was rolled back.
  virtual absl::Status Commit() = 0;

  // Gives key and id. `counts.queued` trials, all QUEUED, must follow.
  virtual absl::Status InsertExperiment(ExperimentRecord& experiment) = 0;
  // Stores the specification and counts `added` trials more, all QUEUED, which must follow; with
  // them the experiment has not ended (any more).
  virtual absl::Status ExtendExperiment(const ExperimentRecord& experiment, int32_t added) = 0;
  virtual absl::Status InsertPack(PackRecord& pack) = 0;
  // In the order given, which is that of their new keys.
  virtual absl::Status InsertTrials(absl::Span<TrialRecord> trials) = 0;
  // Stores what can change of a trial and keeps the experiment's counts, which had it in state
  // `previous`; sets the experiment's end time when its last trial ended, and clears it when one
  // that had ended is queued again.
  virtual absl::Status UpdateTrial(const TrialRecord& trial, v1::TrialState previous) = 0;
  // Gives the position.
  virtual absl::Status AppendEvent(EventRecord& event) = 0;
  // Deletes a trial's events behind a position that a worker made, but log lines: what went wrong
  // stays known.
  virtual absl::Status DeleteWorkerEvents(int64_t trial, int64_t after_position) = 0;
  virtual absl::Status InsertLease(const LeaseRecord& lease) = 0;
  virtual absl::Status DeleteLease(int64_t token) = 0;
  // With its trials and events. From here on no id finds it; its rows may stay until CleanUp has
  // deleted them.
  virtual absl::Status DeleteExperiment(int64_t key) = 0;
  // Between transactions: deletes a bounded part of the rows of deleted experiments or, when there
  // are none, gives a bounded part of the space that nothing uses back to the file system, as a
  // transaction of its own: a few milliseconds. True when there is more to do. Space that is likely
  // to be used again soon is kept.
  virtual absl::StatusOr<bool> CleanUp() = 0;
  // Keeps the experiment's request_id, which is not empty, beyond the experiment.
  virtual absl::Status InsertDeletedRequest(const ExperimentRecord& experiment) = 0;
  // True when the transaction has changed something.
  virtual bool HasChanges() const = 0;
};

// Thread-safe, but for the writer.
class Storage {
 public:
  virtual ~Storage() = default;
  // The only one; for one thread.
  virtual StorageWriter& writer() = 0;
  // What is committed now. Keep it for short: it holds resources of the store.
  virtual absl::StatusOr<std::unique_ptr<StorageReader>> Read() = 0;
  virtual int64_t SizeBytes() const = 0;
  virtual const LeaseKey& lease_key() const = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_STORAGE_H_
