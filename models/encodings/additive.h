// Base of encodings that add a number to the logits for each head and pair of tokens, independent
// of queries and keys.
#ifndef LENGTHWISE_MODELS_ENCODINGS_ADDITIVE_H_
#define LENGTHWISE_MODELS_ENCODINGS_ADDITIVE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Adds the same Bias in every block.
class AdditiveEncoding : public Encoding {
 public:
  int64_t RowsAtOnce(int64_t members, int64_t tokens) const final {
    return std::clamp<int64_t>(kMaxElements / (members * tokens * NumbersPerPair()), 1, tokens);
  }
  bool SameInEveryBlock() const final { return true; }

 protected:
  // Numbers alive at once per pair of tokens while Bias runs, all heads included. Bounds
  // RowsAtOnce.
  virtual int64_t NumbersPerPair() const = 0;

 private:
  // Memory bound of RowsAtOnce, in numbers.
  static constexpr int64_t kMaxElements = int64_t{1} << 25;
};

// |p_i - p_j| for the queries i = first .. first + count - 1 and all keys j of positions [P, n]:
// [P, count, n] of their type.
inline at::Tensor Distances(const at::Tensor& positions, int64_t first, int64_t count) {
  return positions.unsqueeze(1).sub(positions.narrow(1, first, count).unsqueeze(2)).abs();
}

// ALiBi's slopes for `heads` heads. For a power of two: 2^(-8k/heads), k = 1 .. heads. Otherwise
// those of the next lower power of two, then every other one of the next higher power, as in the
// authors' code.
std::vector<double> AlibiSlopes(int64_t heads);

// Index of T5's bucket for a key `distance` >= 0 before the query, out of an even number of
// `buckets`.
int64_t T5Bucket(int64_t distance, int64_t buckets, int64_t max_distance);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ADDITIVE_H_
