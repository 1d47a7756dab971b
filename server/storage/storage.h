// Storage: the server's persistent state in SQLite, records in and records out. One writer, many
// readers.
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
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/storage/records.h"

namespace lengthwise::server {

class SqliteConnection;

// Reads one consistent state, through a connection that must outlive it. Not thread-safe: use one
// per thread.
class StorageReader {
 public:
  explicit StorageReader(SqliteConnection& connection) : connection_(connection) {}
  virtual ~StorageReader() = default;

  // The store's name in errors: its file.
  absl::string_view name() const;

  // The Find functions return nullopt if there is no such record.
  absl::StatusOr<std::optional<ExperimentRecord>> FindExperiment(absl::string_view id);
  // The request that created an experiment, which may have been deleted since.
  absl::StatusOr<std::optional<KnownRequest>> FindRequest(absl::string_view request_id);
  // Returns true if the id belonged to a deleted experiment.
  absl::StatusOr<bool> WasDeleted(absl::string_view id);
  absl::StatusOr<std::optional<TrialRecord>> FindTrial(absl::string_view experiment_id,
                                                       absl::string_view trial_id);
  absl::StatusOr<std::optional<TrialRecord>> FindTrial(int64_t key);
  absl::StatusOr<std::optional<PackRecord>> FindPack(int64_t key);
  // Packs of an experiment, in ascending order of key.
  absl::StatusOr<std::vector<PackRecord>> ListPacks(int64_t experiment);
  // Keys of the experiment's packs, by pack key. Reads no specification.
  absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> PackKeys(int64_t experiment);

  // Ids of all experiments and the names of their specifications, newest first. Reads no
  // specification.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ListExperimentIds();
  // Newest first: experiments with keys below `before` (0: all) of `owner` (empty: all owners).
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(int64_t before,
                                                                const std::string& owner,
                                                                int64_t limit);
  // In the order of the grid.
  absl::StatusOr<std::vector<std::string>> ListTrialIds(int64_t experiment);
  // In the order of the grid, from `first_index` on.
  absl::StatusOr<std::vector<TrialRecord>> ListTrials(int64_t experiment, int32_t first_index,
                                                      const TrialFilter& filter, int64_t limit);
  // Keys of the trials in one of the states: RUNNING before QUEUED, then in ascending order.
  absl::StatusOr<std::vector<int64_t>> ListTrialsInStates(int64_t experiment,
                                                          absl::Span<const v1::TrialState> states);

  // The smallest key, `first` or above, of an experiment that ended so long before `now` that its
  // artifacts are no longer kept: its retention, or `retention` if it has none (0: for ever).
  // 0 if there is none.
  absl::StatusOr<int64_t> FindExpired(int64_t first, absl::Time now, absl::Duration retention);
  // Keys of trials with a checkpoint, attention maps or projections, in the order of the grid.
  absl::StatusOr<std::vector<int64_t>> ListTrialsWithArtifacts(int64_t experiment,
                                                               int32_t first_index, int64_t limit);

  // All QUEUED and then all RUNNING trials of all experiments, in ascending order of key.
  absl::Status ForEachUnendedTrial(
      const std::function<void(const TrialRecord&, const TrialPlacement&)>& take);
  absl::StatusOr<std::vector<LeaseRecord>> ListLeases();
  // By worker.
  absl::StatusOr<std::vector<HoldRecord>> ListHolds();
  // What owners have used until `now`: trials, steps and worker_seconds. Without those who have
  // used nothing.
  absl::StatusOr<std::vector<v1::OwnerUsage>> ListUsage(absl::Time now);
  // CANCELLED trials whose newest lease is `token`.
  absl::StatusOr<std::vector<int64_t>> ListCancelledTrials(int64_t token);
  // In ascending order of key, from keys above `after` on.
  absl::StatusOr<std::vector<SweepRecord>> ListSweeps(int64_t after, int64_t limit);
  // One more than the largest token ever recorded.
  absl::StatusOr<int64_t> NextToken();

  // Called with an event and its trial's id. Return false to stop.
  using TakeEvent = std::function<bool(const EventRecord&, absl::string_view trial_id)>;
  // Events from `start_position` on, in order of position: of the trial unless it is 0, else of the
  // experiment. With `log_only`, only log lines and changes of state.
  absl::Status ForEachEvent(int64_t experiment, int64_t trial, int64_t start_position,
                            bool log_only, const TakeEvent& take);
  // Events of one kind, ordered by the trial's index and then by position: of the trial unless it
  // is 0, else of the experiment.
  absl::Status ForEachEventOfKind(int64_t experiment, int64_t trial, int kind,
                                  const TakeEvent& take);
  // A trial's newest events of a kind, newest first.
  absl::StatusOr<std::vector<EventRecord>> NewestEvents(int64_t trial, int kind, int64_t limit);
  // The largest position ever assigned. 0 if there is none.
  absl::StatusOr<int64_t> LastPosition();
  // Number of events of a kind that workers sent in an attempt.
  absl::StatusOr<int64_t> CountWorkerEvents(int64_t trial, int32_t attempt, int kind);
  // Number of an experiment's events at positions `first` to `last`, inclusive.
  absl::StatusOr<int64_t> CountEvents(int64_t experiment, int64_t first, int64_t last);
  // Total bytes of their payloads. Reads all of them.
  absl::StatusOr<int64_t> EventBytes(int64_t experiment, int64_t first, int64_t last);
  // Largest sequence number stored for an attempt. 0 if there is none.
  absl::StatusOr<int64_t> LastSequence(int64_t trial, int32_t attempt);

  // Number of queued and running trials in all experiments of an owner.
  absl::StatusOr<int64_t> CountUnendedTrials(absl::string_view owner);
  // Sums over all experiments.
  absl::StatusOr<v1::TrialCounts> TotalCounts();
  // Queue time of the oldest queued trial. NoTime() if none is queued.
  absl::StatusOr<absl::Time> OldestQueued();

 protected:
  // Called before experiments' counts and end times are read.
  virtual absl::Status StoreCounts() { return absl::OkStatus(); }

  SqliteConnection& connection_;
};

// Writes, between Begin and Commit. After the first failure of the store all further calls and the
// Commit fail with that error, and nothing of the transaction is stored.
class StorageWriter : public StorageReader {
 public:
  // `epoch` is that of this process in the table `owner`. `on_lost` as in SqliteOptions.
  StorageWriter(SqliteConnection& connection, int64_t epoch,
                std::function<void(const absl::Status&)> on_lost)
      : StorageReader(connection), epoch_(epoch), on_lost_(std::move(on_lost)) {}

  virtual absl::Status Begin();
  // OK means durable. Otherwise the transaction was rolled back.
  virtual absl::Status Commit();

  // Reserves the next id of an experiment of this name. It is not given out again.
  absl::StatusOr<std::string> ReserveExperimentId(absl::string_view name);
  // Assigns the key, and an id if it has none. `counts.queued` trials, all QUEUED, must follow.
  absl::Status InsertExperiment(ExperimentRecord& experiment);
  // Stores the specification and adds `added` to the queued trials. The trials, all QUEUED, must
  // follow. Clears the experiment's end time.
  absl::Status ExtendExperiment(const ExperimentRecord& experiment, int32_t added);
  absl::Status ChangeOwner(int64_t key, absl::string_view owner);
  // Stores the part of a serialized v1::TrialSpecification that packs of the experiment share, and
  // returns its key.
  absl::StatusOr<int64_t> InsertShared(int64_t experiment, absl::string_view specification);
  absl::Status InsertPack(PackRecord& pack);
  // Assigns ascending keys in the order given.
  absl::Status InsertTrials(absl::Span<TrialRecord> trials);
  // Stores the fields of a trial that can change, and updates the experiment's counts, which had it
  // in state `previous`. Sets the experiment's end time when its last trial ends, and clears it
  // when an ended trial is queued again.
  absl::Status UpdateTrial(const TrialRecord& trial, v1::TrialState previous);
  // Assigns the position.
  absl::Status AppendEvent(EventRecord& event);
  // Deletes the events that workers sent for a trial after a position. Keeps log lines, which
  // explain what went wrong.
  absl::Status DeleteWorkerEvents(int64_t trial, int64_t after_position);
  // Deletes a trial's attention maps and projections.
  absl::Status DeleteMaps(int64_t trial);
  // FindExpired passes over the experiment until it ends again.
  absl::Status SetExpired(int64_t experiment);
  absl::Status InsertLease(const LeaseRecord& lease);
  // The time from its grant to `end` counts as used by the owner of its trials.
  absl::Status DeleteLease(int64_t token, absl::Time end);
  // Counts trials and steps as used by the experiment's owner.
  absl::Status AddUsage(int64_t experiment, int64_t trials, int64_t steps);
  // Replaces the hold of the same worker.
  absl::Status PutHold(const HoldRecord& hold);
  absl::Status DeleteHold(absl::string_view worker);
  // Ignores the record's key.
  absl::Status InsertSweep(const SweepRecord& sweep);
  absl::Status DeleteSweep(int64_t key);
  // Deletes an experiment with its trials and events, but keeps its request_id (FindRequest). It
  // cannot be found by id from now on; its rows may stay until CleanUp deletes them.
  absl::Status DeleteExperiment(int64_t key);
  // Called between transactions. Deletes a bounded number of rows of deleted experiments, or, if
  // there are none, returns a bounded amount of unused space to the file system. Runs in a
  // transaction of its own, for a few milliseconds. Keeps space that is likely to be used again
  // soon. True if there is more to do.
  absl::StatusOr<bool> CleanUp();
  // True if the transaction has changed something.
  bool HasChanges() const;

 private:
  // Inserts 1 or kRowsAtOnce trials in one statement.
  absl::Status InsertRows(absl::Span<TrialRecord> trials);
  void ReportFailedSync();
  // Within a transaction: an error if the database is no longer this process's.
  absl::Status CheckOwner();
  // Deletes a part of an experiment's rows: events, then trials, then the rest.
  absl::Status DeleteRows(int64_t experiment);
  absl::StatusOr<bool> GiveBackSpace();
  // Writes counts_ to the experiments' rows.
  absl::Status StoreCounts() override;

  const int64_t epoch_;
  const std::function<void(const absl::Status&)> on_lost_;
  // Why the database is no longer this process's. OK while it is.
  absl::Status lost_;
  int64_t changes_at_begin_ = 0;

  // Changes of an experiment's counts, collected until its row is read or the transaction ends.
  // SQLite rewrites the whole row, with its specification, at each update, and 100,000 trials may
  // be cancelled in one go.
  struct CountChanges {
    v1::TrialCounts counts;
    // End time of the last trial.
    absl::Time end_time = NoTime();
  };
  // By experiment key.
  absl::flat_hash_map<int64_t, CountChanges> counts_;

  // There may be rows of deleted experiments, or unused space, that CleanUp has not handled. True
  // at the start, because an earlier process may have left some.
  bool may_have_rows_ = true;
  bool may_have_space_ = true;
  bool gave_space_back_ = false;
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
