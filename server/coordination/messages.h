// Between the store's records and the API's messages.
#ifndef LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_
#define LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/specification.pb.h"
#include "server/storage/records.h"
#include "specification/resolve.h"

namespace lengthwise::server {

v1::Experiment ToExperiment(const ExperimentRecord& record);

// The pack holds what trials share, the trial the rest: learning rate and seeds.
PackRecord ToPack(const specification::GridPack& pack);
v1::TrialSpecification ToTrialSpecification(const TrialRecord& trial, const PackRecord& pack);
v1::Trial ToTrial(const TrialRecord& trial, const PackRecord& pack);

v1::Event ToEvent(const EventRecord& record, absl::string_view experiment_id,
                  absl::string_view trial_id);
// Without experiment and trial. Consumes the event.
EventRecord ToEventRecord(v1::Event event);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_MESSAGES_H_
