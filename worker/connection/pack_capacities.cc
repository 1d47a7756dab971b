#include "worker/connection/pack_capacities.h"

#include <algorithm>

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// The server keeps as many per worker. Forgetting one is harmless: it is learned again.
constexpr size_t kMostShapes = 1000;

}  // namespace

void PackCapacities::DidNotFit(absl::string_view shape, int64_t trials) {
  if (shape.empty() || trials <= 1) return;
  const auto half = static_cast<int32_t>(trials / 2);
  MutexLock lock(mutex_);
  const auto known = capacities_.find(shape);
  if (known != capacities_.end()) {
    known->second.trials = std::min(known->second.trials, half);
    return;
  }
  if (capacities_.size() >= kMostShapes) capacities_.clear();
  capacities_[std::string(shape)].trials = half;
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
