// The writes of a store in SQLite.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_

#include "server/storage/sqlite_reader.h"

namespace lengthwise::server {

class SqliteWriter : public SqliteReader<StorageWriter> {
 public:
  using SqliteReader<StorageWriter>::SqliteReader;

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
  absl::Status InsertDeletedRequest(const ExperimentRecord& experiment) override;
  bool HasChanges() const override;

 private:
  // By one statement: 1 or kRowsAtOnce.
  absl::Status InsertRows(absl::Span<TrialRecord> trials);
  absl::Status CountTrial(int64_t experiment, v1::TrialState state, int by);

  int64_t changes_at_begin_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_WRITER_H_
