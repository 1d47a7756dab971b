// SqliteWriter: the writes of a store in SQLite.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/storage/sqlite_reader.h"

namespace lengthwise::server {

class SqliteWriter : public SqliteReader<StorageWriter> {
 public:
  // `epoch` is that of this process in the table `owner`. `on_lost` as in SqliteOptions.
  SqliteWriter(SqliteConnection& connection, int64_t epoch,
               std::function<void(const absl::Status&)> on_lost)
      : SqliteReader<StorageWriter>(connection), epoch_(epoch), on_lost_(std::move(on_lost)) {}

  absl::StatusOr<std::optional<ExperimentRecord>> FindExperiment(absl::string_view id) override;
  absl::StatusOr<std::optional<ExperimentRecord>> FindRequest(
      absl::string_view request_id) override;
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(int64_t before,
                                                                const std::string& owner,
                                                                int64_t limit) override;
  absl::StatusOr<int64_t> CountUnendedTrials(absl::string_view owner) override;
  absl::StatusOr<v1::TrialCounts> TotalCounts() override;

  absl::Status Begin() override;
  absl::Status Commit() override;
  absl::StatusOr<std::string> ReserveExperimentId(absl::string_view name) override;
  absl::Status InsertExperiment(ExperimentRecord& experiment) override;
  absl::Status ExtendExperiment(const ExperimentRecord& experiment, int32_t added) override;
  absl::Status InsertPack(PackRecord& pack) override;
  absl::Status InsertTrials(absl::Span<TrialRecord> trials) override;
  absl::Status UpdateTrial(const TrialRecord& trial, v1::TrialState previous) override;
  absl::Status AppendEvent(EventRecord& event) override;
  absl::Status DeleteWorkerEvents(int64_t trial, int64_t after_position) override;
  absl::Status InsertLease(const LeaseRecord& lease) override;
  absl::Status DeleteLease(int64_t token) override;
  absl::Status InsertSweep(const SweepRecord& sweep) override;
  absl::Status DeleteSweep(int64_t key) override;
  absl::Status DeleteExperiment(int64_t key) override;
  absl::StatusOr<bool> CleanUp() override;
  absl::Status InsertDeletedRequest(const ExperimentRecord& experiment) override;
  bool HasChanges() const override;

 private:
  // Inserts 1 or kRowsAtOnce trials in one statement.
  absl::Status InsertRows(absl::Span<TrialRecord> trials);
  void ReportFailedSync();
  // Within a transaction: an error if the database is no longer this process's.
  absl::Status CheckOwner();
  // Deletes a part of an experiment's rows: events, then trials, then the rest.
  absl::Status DeleteRows(int64_t experiment);
  absl::StatusOr<bool> GiveBackSpace();
  // Writes counts_ to the experiments' rows. Must be called before the counts are read.
  absl::Status StoreCounts();

  const int64_t epoch_;
  const std::function<void(const absl::Status&)> on_lost_;
  // Why the database is no longer this process's. OK while it is.
  absl::Status lost_;
  int64_t changes_at_begin_ = 0;

  // Changes of an experiment's counts, collected until its row is read or the transaction ends.
  // SQLite rewrites the whole row, with its specification, at each update, and 100,000 trials may
  // be cancelled in one go.
  struct CountChanges {
    int64_t queued = 0;
    int64_t running = 0;
    int64_t succeeded = 0;
    int64_t failed = 0;
    int64_t cancelled = 0;
    // End time of the last trial.
    absl::Time end_time = NoTime();
  };
  static int64_t& CountOf(CountChanges& changes, v1::TrialState state);
  // By experiment key.
  absl::flat_hash_map<int64_t, CountChanges> counts_;

  // There may be rows of deleted experiments, or unused space, that CleanUp has not handled. True
  // at the start, because an earlier process may have left some.
  bool may_have_rows_ = true;
  bool may_have_space_ = true;
  bool gave_space_back_ = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_
