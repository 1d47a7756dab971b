#include "server/coordination/fleet.h"

#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "monitoring/samples.h"
#include "proto/timestamps.h"

namespace lengthwise::server {

absl::Status Fleet::Register(const v1::WorkerDescription& description, absl::string_view principal,
                             absl::Time now, absl::Time wall) {
  platform::MutexLock lock(mutex_);
  // O(workers), so not at each call of one that has too many.
  if (owned_[principal] >= most_ && now - forgotten_ >= absl::Seconds(1)) Forget(now);
  const auto known = workers_.find(description.worker_id());
  if (known == workers_.end() || known->second.principal != principal) {
    int64_t& owned = owned_[principal];
    if (owned >= most_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(principal, " has registered ", owned,
                       " workers within an hour; accepted: at most ", most_));
    }
    ++owned;
    if (known != workers_.end()) --owned_[known->second.principal];
  }
  Entry& entry = workers_[description.worker_id()];
  entry.principal = std::string(principal);
  entry.last_heard = now;
  entry.worker.set_worker_id(description.worker_id());
  *entry.worker.mutable_provenance() = description.provenance();
  entry.worker.set_max_pack_size(description.max_pack_size());
  entry.worker.clear_stopped();
  *entry.worker.mutable_register_time() = ToTimestamp(wall);
  *entry.worker.mutable_last_heartbeat_time() = ToTimestamp(wall);
  return absl::OkStatus();
}

std::optional<std::string> Fleet::PrincipalOf(absl::string_view worker) {
  platform::MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return std::nullopt;
  return found->second.principal;
}

void Fleet::Heartbeat(absl::string_view worker, const v1::WorkerMeasurements& measurements,
                      absl::Time now, absl::Time wall) {
  platform::MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  Entry& entry = found->second;
  entry.last_heard = now;
  *entry.worker.mutable_last_heartbeat_time() = ToTimestamp(wall);
  entry.worker.set_steps_per_second(measurements.steps_per_second());
  entry.worker.set_model_steps_per_second(measurements.model_steps_per_second());
  entry.worker.set_resident_memory_bytes(measurements.resident_memory_bytes());
  entry.worker.set_gpu_memory_used_bytes(measurements.gpu().memory_used_bytes());
  entry.worker.set_gpu_memory_total_bytes(measurements.gpu().memory_total_bytes());
  if (measurements.has_time()) {
    entry.worker.set_clock_ahead_seconds(absl::ToDoubleSeconds(ToTime(measurements.time()) - wall));
  }
  if (!measurements.kernels().empty()) {
    entry.worker.mutable_provenance()->set_kernels(measurements.kernels());
  }
  entry.measurements = measurements;
  // A worker must not make the server export an inconsistent distribution, or any number of
  // buckets.
  if (!monitoring::IsSound(measurements.step_seconds())) entry.measurements.clear_step_seconds();
}

void Fleet::Stop(absl::string_view worker, absl::string_view session, int64_t number,
                 const std::string& fault) {
  platform::MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  Entry& entry = found->second;
  entry.worker.set_stopped(true);
  entry.worker.set_fault(fault);
  entry.stopped_session = std::string(session);
  entry.stopped_number = number;
}

bool Fleet::HasStopped(absl::string_view worker, absl::string_view session, int64_t number) {
  platform::MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.worker.stopped() &&
         found->second.stopped_session == session && number < found->second.stopped_number;
}

void Fleet::Forget(absl::Time now) {
  forgotten_ = now;
  for (auto next = workers_.begin(); next != workers_.end();) {
    const Entry& entry = next->second;
    const absl::Duration memory = entry.worker.stopped() ? absl::Minutes(10) : absl::Hours(1);
    const bool ends = now - entry.last_heard > memory;
    if (ends) --owned_[entry.principal];
    next = ends ? workers_.erase(next) : std::next(next);
  }
}

std::vector<v1::Worker> Fleet::List(absl::Time now) {
  platform::MutexLock lock(mutex_);
  Forget(now);
  std::vector<v1::Worker> workers;
  size_t bytes = 0;
  for (const auto& [id, entry] : workers_) {
    v1::Worker& worker = workers.emplace_back(entry.worker);
    bytes += worker.ByteSizeLong();
    if (bytes > kMostListBytes) worker.clear_provenance();
  }
  return workers;
}

std::vector<monitoring::WorkerSample> Fleet::Samples(absl::Time now) {
  platform::MutexLock lock(mutex_);
  Forget(now);
  std::vector<monitoring::WorkerSample> samples;
  for (const auto& [id, entry] : workers_) {
    // Workers of earlier releases do not tell their time.
    const bool has_time = entry.measurements.has_time();
    samples.push_back(
        {.worker_id = id,
         .provenance = entry.worker.provenance(),
         .max_pack_size = entry.worker.max_pack_size(),
         .measurements = entry.measurements,
         .clock_ahead_seconds =
             has_time ? std::optional(entry.worker.clock_ahead_seconds()) : std::nullopt});
  }
  return samples;
}

}  // namespace lengthwise::server
