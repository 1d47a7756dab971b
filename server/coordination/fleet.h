// What workers said of themselves; whether they are alive, the scheduler knows.
#ifndef LENGTHWISE_SERVER_COORDINATION_FLEET_H_
#define LENGTHWISE_SERVER_COORDINATION_FLEET_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "monitoring/worker_sample.h"
#include "platform/mutex.h"
#include "proto/fleet_service.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {

// Thread-safe. `now` is of a steady clock, so that nobody is forgotten because a clock was set;
// `wall` is what is shown.
class Fleet {
 public:
  // The worker belongs to `principal` from now on.
  void Register(const v1::WorkerDescription& description, absl::string_view principal,
                absl::Time now, absl::Time wall);
  // Absent for a worker that is not known (any more).
  std::optional<std::string> PrincipalOf(absl::string_view worker);
  void Heartbeat(absl::string_view worker, const v1::WorkerMeasurements& measurements,
                 absl::Time now, absl::Time wall);
  // The worker exits.
  void Stop(absl::string_view worker);
  // Workers heard of in the last hour, and of those that stopped in the last ten minutes, by id;
  // forgets the others. Alive and trials are not set.
  std::vector<v1::Worker> List(absl::Time now);
  // What the same workers last measured, by id.
  std::vector<monitoring::WorkerSample> Samples(absl::Time now);

 private:
  struct Entry {
    v1::Worker worker;
    std::string principal;
    v1::WorkerMeasurements measurements;
    absl::Time last_heard;
  };

  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  platform::Mutex mutex_;
  absl::btree_map<std::string, Entry> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_FLEET_H_
