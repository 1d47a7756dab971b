// Provides runner tests with a runner on the CPU and short summaries of its events.
#ifndef LENGTHWISE_WORKER_TRAINING_TESTING_PACK_RUNNER_FIXTURE_H_
#define LENGTHWISE_WORKER_TRAINING_TESTING_PACK_RUNNER_FIXTURE_H_

#include <string>
#include <vector>

#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"
#include "worker/pack_session.h"
#include "worker/training/testing/recording_session.h"

namespace lengthwise::worker {

// Returns a runner on the CPU with one thread, for packs of up to 8 members.
PackRunner& Runner();

// Runs the lease in the session, which must be able to run.
void RunLease(const v1::Lease& lease, RecordingSession& session);

// Returns the history of a trial that is trained alone without interruption.
std::vector<std::string> HistoryAlone(const v1::TrialSpecification& trial);

// Returns the kind and step of each event: "point 3", "evaluation 15", "checkpoint 20".
std::vector<std::string> Outline(const std::vector<v1::Event>& events);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_TRAINING_TESTING_PACK_RUNNER_FIXTURE_H_
