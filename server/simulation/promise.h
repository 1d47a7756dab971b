// Promise: the server's promise about trials, checked against what it stores: after every
// transaction that changed a trial, every lease, every batch of events and every restart.
// Independent of the implementation of engine and scheduler.
#ifndef LENGTHWISE_SERVER_SIMULATION_PROMISE_H_
#define LENGTHWISE_SERVER_SIMULATION_PROMISE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "proto/worker_service.pb.h"
#include "server/scheduling/scheduler.h"
#include "server/simulation/simulated_storage.h"

namespace lengthwise::server {

class Promise {
 public:
  // The first violation. Empty if there is none.
  const std::string& broken() const { return broken_; }
  void Break(std::string what);

  // Checks of all trials run at every commit and lease of a small fleet, and at a fraction of them
  // for a large one, which could not be simulated otherwise. Checks of changed trials always run.
  void SetFleet(int64_t workers) { full_check_every_ = std::max<int64_t>(1, workers / 50); }

  // These trials, by experiment, changed state since the previous commit.
  void CheckCommit(SimulatedStorage& store,
                   const absl::btree_map<std::string, absl::btree_set<int64_t>>& trials,
                   Scheduler& scheduler, absl::Time now);
  // A server started.
  void Started(SimulatedStorage& store, absl::Time now);
  // The scheduler was rebuilt from the store.
  void CheckRebuilt(SimulatedStorage& store, Scheduler& scheduler);

  // The owners that may be leased to next: those that wait at the highest priority with waiting
  // trials.
  struct Choice {
    std::optional<int32_t> priority;
    std::set<std::string> owners;
    std::map<std::string, int64_t> running;  // running trials by owner
  };
  // Absent if this lease of a large fleet is not checked.
  std::optional<Choice> ChoiceOf(SimulatedStorage& store, absl::Time now);
  // A worker's process got this response. `choice` is from before the call.
  void CheckLease(SimulatedStorage& store, const std::optional<Choice>& choice,
                  const std::string& process, const v1::SynchronizeResponse& response);
  // A process listed the lease in a call that the server heard.
  void Listed(int64_t token) { offered_.erase(token); }

  // Events were stored or refused. `before` is the trial before the call; absent if it is deleted.
  void CheckEvents(const std::optional<TrialRecord>& before, int64_t last_before,
                   const v1::StreamEventsRequest& request,
                   const v1::StreamEventsResponse& response);
  // The worker was told that its events up to `sequence` are durable.
  void Acknowledge(const std::string& trial, int32_t attempt, int64_t sequence);

  // A user was told that a request created this experiment.
  void Created(const std::string& request_id, const std::string& experiment);
  // A transaction deletes the experiment. From now on it may be gone, even if the user gets no
  // answer: the server may die after the commit.
  void Deleting(const std::string& experiment);

  // What happened.
  struct Counts {
    int64_t successes = 0;
    int64_t preemptions = 0;
    int64_t splits = 0;
    int64_t retries = 0;
    int64_t expiries = 0;
    // Trials that ran alone after two lost workers, and those that failed after three.
    int64_t alone = 0;
    int64_t condemned = 0;
    // Leases that were offered again, because an answer was lost.
    int64_t offered_again = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Known {
    v1::TrialState state = v1::QUEUED;
    int64_t position = 0;  // position of the last change that was checked
    int32_t attempt = 0;
    std::string worker;     // of that attempt
    std::string failed_on;  // the worker of its last temporary failure
    // Since it was submitted or retried.
    int32_t failures = 0;
    int32_t preemptions = 0;
    // Workers lost since then, or since the newest checkpoint.
    int32_t losses = 0;
  };

  void CheckTrial(SimulatedStorage& store, const TrialRecord& trial, Scheduler& scheduler,
                  absl::Time now);
  void CheckChange(SimulatedStorage& store, const TrialRecord& trial, const v1::Event& event,
                   Known& known);
  // A trial that succeeded must have the history of an undisturbed run.
  void CheckHistory(SimulatedStorage& store, const TrialRecord& trial);
  void CheckExperiment(SimulatedStorage& store, const std::string& id);
  // Checks that the lease goes to one of the owners in `choice`.
  void CheckChoice(SimulatedStorage& store, const Choice& choice, const v1::Lease& lease);

  std::string broken_;
  std::map<int64_t, Known> known_;
  std::map<std::pair<std::string, int32_t>, int64_t> acknowledged_;  // by trial and attempt
  std::map<std::string, std::string> created_;                       // by request
  std::set<std::string> deleted_;                                    // or may be deleted
  std::map<std::string, int64_t> passed_over_;                       // by owner
  std::map<int64_t, std::string> offered_;                           // processes of unlisted leases
  int64_t last_token_ = 0;
  int64_t full_check_every_ = 1;
  int64_t commits_ = 0;
  int64_t leases_ = 0;
  Counts counts_;
  // Lost workers count against no trial before.
  absl::Time losses_count_from_ = absl::InfinitePast();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_PROMISE_H_
