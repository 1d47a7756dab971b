#include "server/coordination/fleet.h"

#include <iterator>

#include "google/protobuf/util/time_util.h"

namespace lengthwise::server {
namespace {

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(time));
}

}  // namespace

void Fleet::Register(const v1::WorkerDescription& description, absl::Time now) {
  platform::MutexLock lock(mutex_);
  Entry& entry = workers_[description.worker_id()];
  entry.last_heard = now;
  entry.worker.set_worker_id(description.worker_id());
  *entry.worker.mutable_provenance() = description.provenance();
  entry.worker.set_max_pack_size(description.max_pack_size());
  *entry.worker.mutable_register_time() = ToTimestamp(now);
  *entry.worker.mutable_last_heartbeat_time() = ToTimestamp(now);
}

void Fleet::Heartbeat(absl::string_view worker, const v1::WorkerMeasurements& measurements,
                      absl::Time now) {
  platform::MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  Entry& entry = found->second;
  entry.last_heard = now;
  *entry.worker.mutable_last_heartbeat_time() = ToTimestamp(now);
  entry.worker.set_steps_per_second(measurements.steps_per_second());
  entry.worker.set_model_steps_per_second(measurements.model_steps_per_second());
}

std::vector<v1::Worker> Fleet::List(absl::Time now) {
  platform::MutexLock lock(mutex_);
  std::vector<v1::Worker> workers;
  for (auto entry = workers_.begin(); entry != workers_.end();) {
    if (now - entry->second.last_heard > absl::Hours(1)) {
      entry = workers_.erase(entry);
    } else {
      workers.push_back(entry->second.worker);
      ++entry;
    }
  }
  return workers;
}

}  // namespace lengthwise::server
