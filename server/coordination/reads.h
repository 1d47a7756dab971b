// Reads: answers queries about experiments, trials and workers, from a snapshot of the store and
// the scheduler's reasons.
#ifndef LENGTHWISE_SERVER_COORDINATION_READS_H_
#define LENGTHWISE_SERVER_COORDINATION_READS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/experiment_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "server/coordination/command_loop.h"
#include "server/coordination/fleet.h"
#include "server/coordination/ledger.h"
#include "server/coordination/summaries.h"
#include "server/coordination/usage.h"
#include "server/coordination/waiting_calls.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Thread-safe. Blocks on the store, on the caller's thread. Errors are those that the rpcs
// document.
class Reads {
 public:
  // All references must outlive it. `fault` returns why progress of running trials, or the lease of
  // a queued one, cannot be stored now.
  Reads(Storage& storage, CommandLoop& loop, Ledger& ledger, const WaitingCalls& waiting,
        Fleet& fleet, Usage& usage, std::function<std::string(bool running)> fault)
      : storage_(storage),
        loop_(loop),
        ledger_(ledger),
        waiting_(waiting),
        fleet_(fleet),
        fault_(std::move(fault)),
        summaries_(storage),
        usage_(usage) {}

  // Measures the disk use unless it is omitted. That reads the directories of the artifacts, and
  // the payloads of events that were not measured before.
  absl::StatusOr<v1::Experiment> GetExperiment(absl::string_view name, bool omit_disk_use = false);
  absl::StatusOr<v1::FindExperimentResponse> FindExperiment(
      const v1::FindExperimentRequest& request);
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const v1::ListExperimentsRequest& request);
  // The first answer for an experiment reads its results from the store; later ones read those that
  // have changed.
  absl::StatusOr<v1::SummarizeExperimentResponse> SummarizeExperiment(
      const v1::SummarizeExperimentRequest& request);
  // The owner of an experiment, or of the experiment of a trial. NOT_FOUND.
  absl::StatusOr<std::string> GetOwner(absl::string_view experiment_or_trial);
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name);
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(const v1::ListTrialsRequest& request);
  v1::ListWorkersResponse ListWorkers();
  absl::StatusOr<v1::GetWantedWorkersResponse> GetWantedWorkers(
      const v1::GetWantedWorkersRequest& request);

  // Called after a commit.
  void Publish(const Effects& effects);
  // Called after a failed commit: the store may differ from what was published.
  void Forget() { summaries_.ForgetAll(); }

 private:
  // Returns the trial's reason; for a queued one why it waits, and what put it back into the queue;
  // for a running one why its progress cannot be stored, if so.
  std::string ReasonOf(const TrialRecord& trial);

  Storage& storage_;
  CommandLoop& loop_;
  Ledger& ledger_;
  const WaitingCalls& waiting_;
  Fleet& fleet_;
  const std::function<std::string(bool running)> fault_;
  Summaries summaries_;
  Usage& usage_;
};

// What a user means by a text: the answer of FindExperiment, where experiment and trial have their
// names alone. Errors are those that the rpc documents.
absl::StatusOr<v1::FindExperimentResponse> Search(StorageReader& reader,
                                                  const v1::FindExperimentRequest& request);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_READS_H_
