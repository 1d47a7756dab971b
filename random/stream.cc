#include "random/stream.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "Random123/philox.h"
#include "absl/container/flat_hash_map.h"

namespace lengthwise::random {

Stream::Stream(uint64_t seed, Purpose purpose, uint64_t step, uint32_t row)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{
          0, row, static_cast<uint32_t>(step),
          (static_cast<uint32_t>(purpose) << 24) | (static_cast<uint32_t>(step >> 32) & 0xffffffU)},
      block_{} {}

void Stream::Refill() {
  r123::Philox4x32::ctr_type counter{{counter_[0], counter_[1], counter_[2], counter_[3]}};
  const r123::Philox4x32::key_type key{{key_[0], key_[1]}};
  const r123::Philox4x32::ctr_type block = r123::Philox4x32()(counter, key);
  for (size_t i = 0; i < block_.size(); ++i) block_[i] = block[i];
  ++counter_[0];
  used_ = 0;
}

uint32_t Stream::NextUint32() {
  if (used_ == 4) Refill();
  return block_[static_cast<size_t>(used_++)];
}

uint64_t Stream::NextUint64() {
  const uint64_t low = NextUint32();
  return low | (static_cast<uint64_t>(NextUint32()) << 32);
}

uint32_t Stream::Below(uint32_t bound) {
  // Lemire 2019: multiply and shift, rejecting the few values that would favour small results.
  uint64_t product = static_cast<uint64_t>(NextUint32()) * bound;
  if (static_cast<uint32_t>(product) < bound) {
    const uint32_t threshold = (0U - bound) % bound;
    while (static_cast<uint32_t>(product) < threshold) {
      product = static_cast<uint64_t>(NextUint32()) * bound;
    }
  }
  return static_cast<uint32_t>(product >> 32);
}

int64_t Stream::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Below(static_cast<uint32_t>(high - low + 1)));
}

double Stream::NextDouble() { return static_cast<double>(NextUint64() >> 11) * 0x1.0p-53; }

double Stream::NextNormal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  // 1 - u lies in (0, 1], where the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - NextDouble()));
  const double angle = 2.0 * std::numbers::pi * NextDouble();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

std::vector<int64_t> SampleWithoutReplacement(Stream& stream, int64_t bound, int64_t count,
                                              bool sorted) {
  // The first `count` swaps of a Fisher-Yates shuffle of {0, ..., bound - 1}; `moved` holds only
  // the places that differ from the identity, so the cost does not grow with `bound`.
  absl::flat_hash_map<int64_t, int64_t> moved;
  auto at = [&moved](int64_t place) {
    auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  std::vector<int64_t> drawn;
  drawn.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t j = stream.Between(i, bound - 1);
    drawn.push_back(at(j));
    moved[j] = at(i);
  }
  if (sorted) std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace lengthwise::random
