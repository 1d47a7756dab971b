// Decides how many worker jobs to submit to a cluster: a pure function of the current state of the
// server and the cluster and of recent job failures.
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
    // Completed, or ended by its time limit. The cluster forgets it after some minutes.
    kEnded,
    // Ended by a crash of its worker, lack of memory or a node failure.
    kFailed,
    kCancelled,
  };
  // Ascending in the order of submission.
  int64_t id = 0;
  State state = State::kPending;
  // The cluster's reason why it waits, or how it ended.
  std::string reason;
  // End time, if the cluster reports it.
  absl::Time ended = absl::InfiniteFuture();
};

// The observed state that a decision is based on.
struct FleetView {
  std::vector<FleetJob> jobs;
  // Jobs whose workers have registered with the server, and jobs whose workers are alive.
  std::set<int64_t> registered;
  std::set<int64_t> alive;
  // From GetWantedWorkersResponse.
  int64_t runnable_packs = 0;
  int64_t idle_workers = 0;
};

class FleetPlanner {
 public:
  struct Options {
    // Maximum number of running and pending jobs.
    int64_t max_jobs = 10;
    // Maximum number of pending jobs.
    int64_t backlog = 4;
    // After this many failed jobs in a row, nothing is submitted until `pause` has passed since the
    // last failure. A `pause` without a failure also ends the row.
    int failed_jobs = 3;
    absl::Duration pause = absl::Minutes(5);
  };

  struct Plan {
    // Jobs to submit now.
    int64_t submit = 0;
    int64_t pending = 0;
    int64_t running = 0;
    // Why nothing is submitted although packs wait; empty otherwise.
    std::string held_back;
    // The newest failed job if failures pause the fleet; else 0.
    int64_t failed_job = 0;
  };

  explicit FleetPlanner(const Options& options) : options_(options) {}

  Plan Next(const FleetView& view, absl::Time now);
  // Records a job that was submitted after Next().
  void Submitted(int64_t job) { unproven_.insert(job); }
  // Records that the cluster refused a job for a reason that also applies to the next one.
  void Refused(absl::string_view reason, absl::Time now);

 private:
  struct Failure {
    // The job's end, or the time when its failure was noticed if that is earlier.
    absl::Time time;
    // The cluster's reason; empty if it gave none.
    std::string reason;
    bool reached_server = false;
  };

  void NoteFailures(const FleetView& view, absl::Time now);
  // Returns the current row of failures: those that no later job has disproved, each within `pause`
  // of the next, and the last within `pause` of now.
  std::map<int64_t, Failure> FailedInARow(const FleetView& view, absl::Time now) const;

  const Options options_;
  // Jobs that failed, or ended before their worker reached the server. Kept while the cluster lists
  // them and while they may still be part of a row.
  std::map<int64_t, Failure> failed_;
  // Jobs submitted since the last Next(), and jobs that ran then without a registered worker.
  std::set<int64_t> unproven_;
  absl::Time looked_ = absl::InfinitePast();
  std::string refusal_;
  absl::Time refused_ = absl::InfinitePast();
};

// Returns true if a job pending for this squeue reason can never start unless someone changes the
// job or the cluster.
bool IsHopeless(absl::string_view reason);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_FLEET_FLEET_PLAN_H_
