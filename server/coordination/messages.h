// Conversions between the store's records and the API's messages, and headings of summaries.
//
// The store keeps messages as bytes. Bytes that do not parse mean that the store is damaged. They
// are never returned as an incomplete message: DATA_LOSS names the store (`store`, from
// StorageReader::name) and the damaged row.
#ifndef LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_
#define LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/specification.pb.h"
#include "server/storage/artifact_store.h"
#include "server/storage/records.h"
#include "server/storage/storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {

absl::StatusOr<v1::Experiment> ToExperiment(const ExperimentRecord& record,
                                            absl::string_view store);
// For a caller that has parsed the specification already.
v1::Experiment ToExperiment(const ExperimentRecord& record,
                            v1::ExperimentSpecification specification);
absl::StatusOr<v1::ExperimentSpecification> ToSpecification(const ExperimentRecord& record,
                                                            absl::string_view store);

// A pack to be stored: everything its trials share. Learning rate and seeds belong to the trial.
struct NewPack {
  // Without training and evaluation.
  PackRecord record;
  // Those: a serialized v1::TrialSpecification, which packs of a grid have in common.
  std::shared_ptr<const std::string> shared;
  int32_t most_in_lease = 1;  // MostInLease
};
struct NewTrial {
  std::string id;
  double learning_rate = 0;
  uint64_t weight_seed = 0;
  uint64_t data_seed = 0;
  std::shared_ptr<const NewPack> pack;
};
// Drops the grid's packs, each of which has a copy of all lengths.
std::vector<NewTrial> ToNewTrials(std::vector<specification::GridTrial> trials);
// Approximate memory, also of their records.
int64_t BytesOf(absl::Span<const NewTrial> trials);
absl::StatusOr<v1::TrialSpecification> ToTrialSpecification(const TrialRecord& trial,
                                                            const PackRecord& pack,
                                                            absl::string_view store);
// The part of the specification that the trials of a pack share.
absl::StatusOr<v1::TrialSpecification> ToSharedSpecification(const PackRecord& pack,
                                                             absl::string_view store);
// Maximum number of trials in a lease, which repeats their pack's specification of `pack_bytes` for
// each: a worker accepts messages of rpc::kMaxMessageBytes.
int32_t MostInLease(int64_t pack_bytes);
// As ToSharedSpecification, of a stored pack.
absl::StatusOr<v1::TrialSpecification> SharedSpecificationOf(StorageReader& reader, int64_t pack);
// The outcome of a trial that succeeded; empty for others.
absl::StatusOr<v1::Outcome> ToOutcome(const TrialRecord& trial, absl::string_view store);
absl::StatusOr<v1::Trial> ToTrial(const TrialRecord& trial, const PackRecord& pack,
                                  absl::string_view store);

// Columns of a LengthAccuracies are checked to have equal length.
absl::StatusOr<v1::Event> ToEvent(const EventRecord& record, absl::string_view experiment_id,
                                  absl::string_view trial_id, absl::string_view store);
// As ToEvent, for a store that release 0.1.0 may have written. That release stored no mean
// accuracies: they are computed if missing.
absl::StatusOr<v1::Event> ReadEvent(StorageReader& reader, const EventRecord& record,
                                    absl::string_view experiment_id, absl::string_view trial_id);
// The checkpoint of an event that holds one.
absl::StatusOr<v1::Checkpoint> ToCheckpoint(const EventRecord& record, absl::string_view store);
// Fills all fields but experiment and trial. Consumes the event.
EventRecord ToEventRecord(v1::Event event);

// Finds a record by resource name ("experiments/...", "experiments/.../trials/..."). NOT_FOUND, or
// INVALID_ARGUMENT for a malformed name.
absl::StatusOr<ExperimentRecord> FindExperiment(StorageReader& reader, absl::string_view name);
absl::StatusOr<TrialRecord> FindTrial(StorageReader& reader, absl::string_view name);
// The event of the checkpoint that the trial resumes from. Position 0 if it resumes from the
// start.
absl::StatusOr<EventRecord> FindCheckpointEvent(StorageReader& reader, const TrialRecord& trial);

// A checkpoint, and the artifact that holds its bytes.
struct StoredModel {
  ArtifactId artifact;
  v1::Checkpoint checkpoint;
  int64_t step = 0;
};
// The checkpoint that the trial resumes from. nullopt if it resumes from the start.
absl::StatusOr<std::optional<StoredModel>> FindStoredModel(StorageReader& reader,
                                                           const TrialRecord& trial);

// Trial.trained_lengths.
std::vector<v1::LengthRange> TrainedLengths(const v1::Component& task,
                                            const v1::Training& training);

// The words above an experiment's results: what their lengths and scores are, and which lengths
// training showed. Clients print them as they are. `summary` has the lengths of its cells.
v1::SummarizeExperimentResponse::Heading HeadingOf(const v1::ExperimentSpecification& specification,
                                                   const v1::SummarizeExperimentResponse& summary);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_
