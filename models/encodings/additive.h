// What encodings have in common that add to the logits a number for each head and pair of tokens,
// whatever queries and keys are.
#ifndef LENGTHWISE_MODELS_ENCODINGS_ADDITIVE_H_
#define LENGTHWISE_MODELS_ENCODINGS_ADDITIVE_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// The same term in every block.
class AdditiveEncoding : public Encoding {
 public:
  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const final;
  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const final;
  int64_t RowsAtOnce(int64_t members, int64_t tokens) const final;
  bool SameInEveryBlock() const final { return true; }

 protected:
  // What is added for the queries first .. first + count - 1 and all keys, [P or 1, H, count, n],
  // of `positions` [P, n], in the parameters' type. Differentiable in the parameters.
  virtual at::Tensor Bias(const ParameterSet& parameters, const at::Tensor& positions,
                          int64_t first, int64_t count) const = 0;

  // How many numbers exist at once for each pair of tokens while Bias is computed.
  virtual int64_t NumbersPerPair() const = 0;
};

// |p_i - p_j| of the positions [P, n] for the queries i = first .. first + count - 1 and all keys
// j, int64 [P, count, n].
at::Tensor Distances(const at::Tensor& positions, int64_t first, int64_t count);

// ALiBi's slopes of `heads` heads: 2^(-8k/heads), k = 1 .. heads, for a power of two; for others
// those of the next lower power of two and then every other one of the next higher, as in the
// authors' code.
std::vector<double> AlibiSlopes(int64_t heads);

// T5's bucket of a key `distance` >= 0 before the query where it has `buckets`, an even number.
int64_t T5Bucket(int64_t distance, int64_t buckets, int64_t max_distance);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ADDITIVE_H_
