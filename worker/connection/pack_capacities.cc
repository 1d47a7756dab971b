#include "worker/connection/pack_capacities.h"

#include <algorithm>

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// The server keeps as many per worker. Forgetting one is harmless: it is learned again.
constexpr size_t kMostShapes = 1000;

// A measured capacity from here on limits no pack and is not reported.
constexpr int64_t kUnlimited = 1000;

}  // namespace

void PackCapacities::DidNotFit(absl::string_view shape, int64_t trials) {
  if (trials > 1) Limit(shape, trials / 2);
}

void PackCapacities::Measured(absl::string_view shape, int64_t trials) {
  if (trials < kUnlimited) Limit(shape, std::max<int64_t>(1, trials));
}

void PackCapacities::Limit(absl::string_view shape, int64_t trials) {
  if (shape.empty()) return;
  const auto limit = static_cast<int32_t>(trials);
  MutexLock lock(mutex_);
  const auto known = capacities_.find(shape);
  if (known != capacities_.end()) {
    known->second.trials = std::min(known->second.trials, limit);
    return;
  }
  if (capacities_.size() >= kMostShapes) capacities_.clear();
  capacities_[std::string(shape)].trials = limit;
}

void PackCapacities::AddUntold(v1::HeartbeatRequest& request) const {
  MutexLock lock(mutex_);
  for (const auto& [shape, capacity] : capacities_) {
    if (capacity.told == capacity.trials) continue;
    v1::PackCapacity& untold = *request.add_capacities();
    untold.set_shape(shape);
    untold.set_max_pack_size(capacity.trials);
  }
}

void PackCapacities::Told(const v1::HeartbeatRequest& request) {
  MutexLock lock(mutex_);
  for (const v1::PackCapacity& told : request.capacities()) {
    const auto known = capacities_.find(told.shape());
    if (known != capacities_.end()) known->second.told = told.max_pack_size();
  }
}

bool PackCapacities::ForgetTold() {
  MutexLock lock(mutex_);
  for (auto& [shape, capacity] : capacities_) capacity.told = 0;
  return !capacities_.empty();
}

}  // namespace lengthwise::worker
