// Decides how many jobs a cluster is asked for: a pure function of what the server and the cluster
// say now, and of the jobs that failed lately.
#ifndef LENGTHWISE_CLIENT_FLEET_FLEET_PLAN_H_
#define LENGTHWISE_CLIENT_FLEET_FLEET_PLAN_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::client {

// A job of the fleet, as the cluster lists it.
struct FleetJob {
  enum class State {
    kPending,
    kRunning,
    // Over. The cluster forgets it after some minutes.
    kEnded,
    // Ended by its worker's crash, too little memory, or its node.
    kFailed,
    kCancelled,
  };
  // Ascending in the order of submission.
  int64_t id = 0;
  State state = State::kPending;
  // Why it waits, or how it ended, in the cluster's words.
  std::string reason;
  // When it ended, where the cluster says.
  absl::Time ended = absl::InfiniteFuture();
};

// What is known when a decision is made.
struct FleetView {
  std::vector<FleetJob> jobs;
  // Jobs whose workers are known to the server, and those whose workers are alive.
  std::set<int64_t> registered;
  std::set<int64_t> alive;
  // As GetWantedWorkersResponse says.
  int64_t runnable_packs = 0;
  int64_t idle_workers = 0;
};

class FleetPlanner {
 public:
  struct Options {
    // Jobs that run or wait at once, at most.
    int64_t max_jobs = 10;
    // Jobs that wait in the cluster's queue at once, at most.
    int64_t backlog = 4;
    // After so many failed jobs in a row nothing is submitted until `pause` has passed since the
    // last of them. A row ends where `pause` passes without a failure, too.
    int failed_jobs = 3;
    absl::Duration pause = absl::Minutes(5);
  };

  struct Plan {
    // Jobs to submit now.
    int64_t submit = 0;
    int64_t pending = 0;
    int64_t running = 0;
    // Why nothing is submitted although packs wait; empty where it is, or none wait.
    std::string held_back;
    // The newest failed job, where they pause the fleet; else 0.
    int64_t failed_job = 0;
  };

  explicit FleetPlanner(const Options& options) : options_(options) {}

  Plan Next(const FleetView& view, absl::Time now);
  // A job was submitted after a look.
  void Submitted(int64_t job) { unproven_.insert(job); }
  // The cluster refused a job, for a reason that the next one would meet, too.
  void Refused(absl::string_view reason, absl::Time now);

 private:
  struct Failure {
    // The job's end, as far as it is known.
    absl::Time time;
    // In the cluster's words; empty where it did not say.
    std::string reason;
    bool reached_server = false;
  };

  void NoteFailures(const FleetView& view, absl::Time now);
  // Failures in a row: those that no other job has disproved since, each within `pause` of the next
  // and the last within `pause` of now.
  std::map<int64_t, Failure> FailedInARow(const FleetView& view, absl::Time now) const;

  const Options options_;
  // Jobs that failed, or ended before their worker reached the server: while the cluster lists
  // them, and as long as they may be of a row.
  std::map<int64_t, Failure> failed_;
  // Submitted since the last look, or running at it without a worker that the server knew.
  std::set<int64_t> unproven_;
  absl::Time looked_ = absl::InfinitePast();
  std::string refusal_;
  absl::Time refused_ = absl::InfinitePast();
};

// Whether a job that waits for this reason (of squeue) waits for ever: no node could run it.
bool IsHopeless(absl::string_view reason);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_FLEET_FLEET_PLAN_H_
