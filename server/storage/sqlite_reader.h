// SqliteReader: the reads of a store in SQLite, on any connection.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_READER_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_READER_H_

#include <functional>
#include <optional>
#include <vector>

#include "server/storage/sqlite_connection.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// `Base` is StorageReader or StorageWriter. The connection must outlive it.
template <typename Base>
class SqliteReader : public Base {
 public:
  explicit SqliteReader(SqliteConnection& connection) : connection_(connection) {}

  absl::string_view name() const override { return connection_.path(); }
  absl::StatusOr<std::optional<ExperimentRecord>> FindExperiment(absl::string_view id) override;
  absl::StatusOr<std::optional<ExperimentRecord>> FindRequest(
      absl::string_view request_id) override;
  absl::StatusOr<std::optional<DeletedRequest>> FindDeletedRequest(
      absl::string_view request_id) override;
  absl::StatusOr<bool> WasDeleted(absl::string_view id) override;
  absl::StatusOr<std::optional<TrialRecord>> FindTrial(absl::string_view experiment_id,
                                                       absl::string_view trial_id) override;
  absl::StatusOr<std::optional<TrialRecord>> FindTrial(int64_t key) override;
  absl::StatusOr<std::optional<PackRecord>> FindPack(int64_t key) override;
  absl::StatusOr<std::vector<PackRecord>> ListPacks(int64_t experiment) override;
  absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> PackKeys(int64_t experiment) override;
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(int64_t before,
                                                                const std::string& owner,
                                                                int64_t limit) override;
  absl::StatusOr<std::vector<TrialRecord>> ListTrials(int64_t experiment, int32_t first_index,
                                                      const TrialFilter& filter,
                                                      int64_t limit) override;
  absl::StatusOr<std::vector<int64_t>> ListTrialsInStates(
      int64_t experiment, absl::Span<const v1::TrialState> states) override;
  absl::Status ForEachUnendedTrial(
      const std::function<void(const TrialRecord&, const TrialPlacement&)>& take) override;
  absl::StatusOr<std::vector<LeaseRecord>> ListLeases() override;
  absl::StatusOr<std::vector<int64_t>> ListCancelledTrials(int64_t token) override;
  absl::StatusOr<std::vector<SweepRecord>> ListSweeps(int64_t after, int64_t limit) override;
  absl::StatusOr<int64_t> NextToken() override;
  absl::Status ForEachEvent(int64_t experiment, int64_t start_position,
                            const StorageReader::TakeEvent& take) override;
  absl::Status ForEachTrialEvent(int64_t trial, int64_t start_position,
                                 const StorageReader::TakeEvent& take) override;
  absl::Status ForEachLogEvent(int64_t experiment, int64_t trial, int64_t start_position,
                               const StorageReader::TakeEvent& take) override;
  absl::Status ForEachEventOfKind(int64_t experiment, int64_t trial, int kind,
                                  const StorageReader::TakeEvent& take) override;
  absl::StatusOr<std::vector<EventRecord>> NewestEvents(int64_t trial, int kind,
                                                        int64_t limit) override;
  absl::StatusOr<int64_t> LastPosition() override;
  absl::StatusOr<int64_t> CountWorkerEvents(int64_t trial, int32_t attempt, int kind) override;
  absl::StatusOr<int64_t> CountEvents(int64_t experiment, int64_t first, int64_t last) override;
  absl::StatusOr<int64_t> EventBytes(int64_t experiment, int64_t first, int64_t last) override;
  absl::StatusOr<int64_t> LastSequence(int64_t trial, int32_t attempt) override;
  absl::StatusOr<int64_t> CountUnendedTrials(absl::string_view owner) override;
  absl::StatusOr<v1::TrialCounts> TotalCounts() override;
  absl::StatusOr<absl::Time> OldestQueued() override;

 protected:
  SqliteConnection& connection_;
};

extern template class SqliteReader<StorageReader>;
extern template class SqliteReader<StorageWriter>;

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_READER_H_
