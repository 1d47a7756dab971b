// A random order of {0, ..., bound - 1} of which any place can be asked for alone.
#ifndef LENGTHWISE_RANDOM_PERMUTATION_H_
#define LENGTHWISE_RANDOM_PERMUTATION_H_

#include <cstdint>

#include "random/stream.h"

namespace lengthwise::random {

// The order of (seed, purpose, step): a bijection of {0, ..., bound - 1}, made of eight rounds of a
// Feistel network whose round function is Philox, walked along its cycles until the result is below
// the bound (Black and Rogaway 2002). Nothing is stored, so a data set of any size is shuffled anew
// in every epoch, and a resumed trial finds its place, for the price of the examples it uses.
class Permutation {
 public:
  // `bound` from 1 to 2^32.
  Permutation(uint64_t seed, Purpose purpose, uint64_t step, uint64_t bound);

  // What stands at place `index` < bound.
  uint64_t operator()(uint64_t index) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t Scramble(uint64_t value) const;

  uint64_t bound_;
  // Of each half of a value; two halves make the smallest even number of bits that hold the bound.
  int half_bits_;
  uint64_t half_mask_;
  uint64_t keys_[kRounds];
};

}  // namespace lengthwise::random

#endif  // LENGTHWISE_RANDOM_PERMUTATION_H_
