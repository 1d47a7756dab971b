#include <algorithm>

#include "worker/connection/lease_session.h"

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// Every call has all of them. Forgetting one is harmless: it is learned again.
constexpr size_t kMostShapes = 100;

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
    known->second = std::min(known->second, limit);
    return;
  }
  if (capacities_.size() >= kMostShapes) capacities_.clear();
  capacities_[std::string(shape)] = limit;
}

void PackCapacities::AddTo(v1::SynchronizeRequest& request) const {
  MutexLock lock(mutex_);
  for (const auto& [shape, trials] : capacities_) {
    v1::PackCapacity& capacity = *request.add_capacities();
    capacity.set_shape(shape);
    capacity.set_max_pack_size(trials);
  }
}

}  // namespace lengthwise::worker
