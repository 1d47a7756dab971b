// Between the store's records and the API's messages.
//
// What is stored of a message is its bytes. Bytes that are no such message are a damaged store, and
// never a message that lacks something: DATA_LOSS names the store (`store`, StorageReader::name)
// and what is damaged in it.
#ifndef LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_
#define LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/specification.pb.h"
#include "server/storage/records.h"
#include "server/storage/storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {

absl::StatusOr<v1::Experiment> ToExperiment(const ExperimentRecord& record,
                                            absl::string_view store);
// Of a record whose specification is at hand.
v1::Experiment ToExperiment(const ExperimentRecord& record,
                            v1::ExperimentSpecification specification);
absl::StatusOr<v1::ExperimentSpecification> ToSpecification(const ExperimentRecord& record,
                                                            absl::string_view store);

// The pack holds what trials share, the trial the rest: learning rate and seeds.
PackRecord ToPack(const specification::GridPack& pack);
absl::StatusOr<v1::TrialSpecification> ToTrialSpecification(const TrialRecord& trial,
                                                            const PackRecord& pack,
                                                            absl::string_view store);
// What the trials of a pack share.
absl::StatusOr<v1::TrialSpecification> ToSharedSpecification(const PackRecord& pack,
                                                             absl::string_view store);
// Evaluation.seen_up_to of the trials of a pack in the store.
absl::StatusOr<int32_t> SeenUpTo(StorageReader& reader, int64_t pack_key);
// Of a trial that succeeded; empty for others.
absl::StatusOr<v1::Outcome> ToOutcome(const TrialRecord& trial, absl::string_view store);
absl::StatusOr<v1::Trial> ToTrial(const TrialRecord& trial, const PackRecord& pack,
                                  absl::string_view store);

// The columns of a LengthAccuracies are of equal length.
absl::StatusOr<v1::Event> ToEvent(const EventRecord& record, absl::string_view experiment_id,
                                  absl::string_view trial_id, absl::string_view store);
// The same from a store that may have been written by version 0.1.0, which kept no mean accuracies:
// computes those that are missing.
absl::StatusOr<v1::Event> ReadEvent(StorageReader& reader, const EventRecord& record,
                                    absl::string_view experiment_id, absl::string_view trial_id);
// Of an event that is one.
absl::StatusOr<v1::Checkpoint> ToCheckpoint(const EventRecord& record, absl::string_view store);
// Without experiment and trial. Consumes the event.
EventRecord ToEventRecord(v1::Event event);

// The record that a resource name ("experiments/...", "experiments/.../trials/...") stands for.
// NOT_FOUND, or INVALID_ARGUMENT for another name.
absl::StatusOr<ExperimentRecord> FindExperiment(StorageReader& reader, absl::string_view name);
absl::StatusOr<TrialRecord> FindTrial(StorageReader& reader, absl::string_view name);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_
