// The writes of a store in SQLite.
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
  // `on_failed_sync` is called by the Commit or CleanUp in which a sync failed. Later
  // transactions fail.
  SqliteWriter(SqliteConnection& connection,
               std::function<void(const absl::Status&)> on_failed_sync)
      : SqliteReader<StorageWriter>(connection), on_failed_sync_(std::move(on_failed_sync)) {}

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
  absl::Status InsertExperiment(ExperimentRecord& experiment) override;
  absl::Status ExtendExperiment(const ExperimentRecord& experiment, int32_t added) override;
  absl::Status InsertPack(PackRecord& pack) override;
  absl::Status InsertTrials(absl::Span<TrialRecord> trials) override;
  absl::Status UpdateTrial(const TrialRecord& trial, v1::TrialState previous) override;
  absl::Status AppendEvent(EventRecord& event) override;
  absl::Status DeleteWorkerEvents(int64_t trial, int64_t after_position) override;
  absl::Status InsertLease(const LeaseRecord& lease) override;
  absl::Status DeleteLease(int64_t token) override;
  absl::Status DeleteExperiment(int64_t key) override;
  absl::StatusOr<bool> CleanUp() override;
  absl::Status InsertDeletedRequest(const ExperimentRecord& experiment) override;
  bool HasChanges() const override;

 private:
  // By one statement: 1 or kRowsAtOnce.
  absl::Status InsertRows(absl::Span<TrialRecord> trials);
  void ReportFailedSync();
  // Deletes a part of the rows of an experiment: events, then trials, then the rest.
  absl::Status DeleteRows(int64_t experiment);
  absl::StatusOr<bool> GiveBackSpace();
  // Writes counts_ down. The counts of experiments must not be read before.
  absl::Status StoreCounts();

  const std::function<void(const absl::Status&)> on_failed_sync_;
  int64_t changes_at_begin_ = 0;

  // What trials changed in their experiment's row. Kept until somebody reads the row or the
  // transaction ends: SQLite writes the whole row anew, with its specification, and 100,000 trials
  // may be cancelled at once.
  struct CountChanges {
    int64_t queued = 0;
    int64_t running = 0;
    int64_t succeeded = 0;
    int64_t failed = 0;
    int64_t cancelled = 0;
    // When the last trial ended.
    absl::Time end_time = NoTime();
  };
  static int64_t& CountOf(CountChanges& changes, v1::TrialState state);
  // By experiment.
  absl::flat_hash_map<int64_t, CountChanges> counts_;

  // Experiments were deleted since CleanUp found no row of one, or something was since it found no
  // space; perhaps before this was made.
  bool may_have_rows_ = true;
  bool may_have_space_ = true;
  bool gave_space_back_ = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_
