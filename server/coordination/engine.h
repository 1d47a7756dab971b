// Engine: all objects that change state, wired together. The command loop runs it on SQLite. The
// simulation runs it on SQLite in memory, without threads.
#ifndef LENGTHWISE_SERVER_COORDINATION_ENGINE_H_
#define LENGTHWISE_SERVER_COORDINATION_ENGINE_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "server/coordination/event_intake.h"
#include "server/coordination/experiments.h"
#include "server/coordination/fleet.h"
#include "server/coordination/leases.h"
#include "server/coordination/ledger.h"
#include "server/coordination/submissions.h"

namespace lengthwise::server {

struct Engine {
  struct Options {
    Scheduler::Options scheduler;
    // Of a small fleet (Leases::HeartbeatInterval).
    absl::Duration heartbeat_interval = absl::Seconds(1);
    // Maximum number of queued and running trials of one owner. 0: no limit.
    int64_t max_unended_trials = 1'000'000;
  };

  // All references must outlive the engine. Call ledger.Rebuild before anything else.
  Engine(const Options& options, GridResolver resolve, BytesCheck check_bytes, Storage& storage,
         ArtifactStore& artifacts, Fleet& fleet, Clock clock)
      : lease_ids(storage.lease_key()),
        ledger(options.scheduler, storage, std::move(clock)),
        submissions(std::move(resolve), options.max_unended_trials, std::move(check_bytes), storage,
                    artifacts, ledger),
        experiments(ledger, submissions),
        leases(options.scheduler.lease_duration, options.heartbeat_interval, ledger, artifacts,
               fleet, lease_ids),
        events(ledger, artifacts, lease_ids) {}

  const LeaseIds lease_ids;
  Ledger ledger;
  Submissions submissions;
  Experiments experiments;
  Leases leases;
  EventIntake events;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_ENGINE_H_
