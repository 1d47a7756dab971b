#include "random/permutation.h"

#include <algorithm>
#include <bit>

#include "Random123/philox.h"

namespace lengthwise::random {

Permutation::Permutation(uint64_t seed, Purpose purpose, uint64_t step, uint64_t bound)
    : bound_(bound),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(bound - 1)) + 1) / 2)),
      half_mask_((uint64_t{1} << half_bits_) - 1) {
  Stream stream(seed, purpose, step);
  for (uint64_t& key : keys_) key = stream.NextUint64();
}

uint64_t Permutation::Scramble(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & half_mask_;
  for (const uint64_t key : keys_) {
    const r123::Philox2x32::ctr_type counter{
        {static_cast<uint32_t>(right), static_cast<uint32_t>(key >> 32)}};
    const r123::Philox2x32::key_type philox_key{{static_cast<uint32_t>(key)}};
    const uint64_t mixed = left ^ (r123::Philox2x32()(counter, philox_key)[0] & half_mask_);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::operator()(uint64_t index) const {
  // Cycle walking: the network permutes at most four times as many values as the bound, and values
  // outside the bound are mapped again.
  uint64_t value = Scramble(index);
  while (value >= bound_) value = Scramble(value);
  return value;
}

}  // namespace lengthwise::random
