// A random permutation of {0, ..., bound - 1} with random access: any place costs constant memory.
#ifndef LENGTHWISE_RANDOM_PERMUTATION_H_
#define LENGTHWISE_RANDOM_PERMUTATION_H_

#include <cstdint>

#include "random/stream.h"

namespace lengthwise::random {

// The permutation addressed by (seed, purpose, step): an eight-round Feistel network whose round
// function is Philox, with cycle walking until the result is below the bound (Black and Rogaway
// 2002). It stores nothing, so each epoch reshuffles a data set of any size, and a resumed trial
// finds its place at the cost of the examples that it uses.
class Permutation {
 public:
  // `bound` from 1 to 2^32.
  Permutation(uint64_t seed, Purpose purpose, uint64_t step, uint64_t bound);

  // Returns the number at place `index` < bound.
  uint64_t operator()(uint64_t index) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t Scramble(uint64_t value) const;

  uint64_t bound_;
  // Bits of each half of a value. Two halves are the smallest even number of bits that holds the
  // bound.
  int half_bits_;
  uint64_t half_mask_;
  uint64_t keys_[kRounds];
};

}  // namespace lengthwise::random

#endif  // LENGTHWISE_RANDOM_PERMUTATION_H_
