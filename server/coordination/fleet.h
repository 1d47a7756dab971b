// Fleet: the workers' own descriptions and measurements, for lists and metrics. The scheduler
// decides which workers are alive.
#ifndef LENGTHWISE_SERVER_COORDINATION_FLEET_H_
#define LENGTHWISE_SERVER_COORDINATION_FLEET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "monitoring/samples.h"
#include "platform/mutex.h"
#include "proto/fleet_service.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {

// Thread-safe. `now` is of a steady clock, so that setting the system clock evicts no worker.
// `wall` is the time shown to users.
class Fleet {
 public:
  // A list describes workers as long as it has no more bytes.
  static constexpr size_t kMostListBytes = 16 << 20;

  // A principal has at most this number of workers that are not evicted.
  explicit Fleet(int64_t most_of_a_principal = 20'000) : most_(most_of_a_principal) {}

  // Adds or updates the worker. It belongs to `principal` from now on. RESOURCE_EXHAUSTED if that
  // has too many.
  absl::Status Register(const v1::WorkerDescription& description, absl::string_view principal,
                        absl::Time now, absl::Time wall);
  // Absent for an unknown or evicted worker.
  std::optional<std::string> PrincipalOf(absl::string_view worker);
  void Heartbeat(absl::string_view worker, const v1::WorkerMeasurements& measurements,
                 absl::Time now, absl::Time wall);
  // The worker's process `session` is about to exit: its call `number` is the last.
  // `fault`: what is wrong with its machine, if anything is known.
  void Stop(absl::string_view worker, absl::string_view session, int64_t number,
            const std::string& fault);
  // True of a call that the process made before its last one, which overtook it.
  bool HasStopped(absl::string_view worker, absl::string_view session, int64_t number);
  // Evicts workers not heard from for an hour (stopped ones: ten minutes) and returns the others,
  // by id, those beyond kMostListBytes without their provenance. Does not set `alive` and `trials`.
  std::vector<v1::Worker> List(absl::Time now);
  // Evicts as List does and returns the newest measurements of the others, by id.
  std::vector<monitoring::WorkerSample> Samples(absl::Time now);

 private:
  struct Entry {
    v1::Worker worker;
    std::string principal;
    v1::WorkerMeasurements measurements;
    absl::Time last_heard;
    std::string stopped_session;
    int64_t stopped_number = 0;
  };

  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t most_;
  platform::Mutex mutex_;
  absl::btree_map<std::string, Entry> workers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int64_t> owned_ ABSL_GUARDED_BY(mutex_);  // by principal
  absl::Time forgotten_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_FLEET_H_
