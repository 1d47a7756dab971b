// Attention of a sequence that is continued token by token: what earlier tokens' keys and values
// were is kept, so that each token is computed once.
#ifndef LENGTHWISE_MODELS_ATTENTION_ATTENTION_CACHE_H_
#define LENGTHWISE_MODELS_ATTENTION_ATTENTION_CACHE_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Of one block and B sequences of at most T tokens: 2 P B T d numbers, made at once, so that a
// token is written in its place and nothing is copied again. Not thread-safe.
class AttentionCache {
 public:
  // `encoding` is causal (MakeCausal), or the tokens of the first call see each other; it outlives
  // the cache. `positions` [P, T] are those of the tokens. `like` has the type and device of the
  // features, which are `d_model` wide.
  AttentionCache(const Encoding& encoding, int64_t block, int64_t heads, int64_t d_model,
                 int64_t sequences, const at::Tensor& positions, const at::Tensor& like);

  // What Attend of attention.h gives the next k tokens, whose queries, keys and values are `qkv`
  // [P, B, k, 3 d], after those of all calls before: [P, B, k, d]. Not differentiable.
  at::Tensor Attend(const ParameterSet& parameters, const at::Tensor& qkv);

 private:
  // Terms for at least the rows [row, row + 1), kept for the calls that follow.
  void ProvideTerms(const ParameterSet& parameters, int64_t row);
  // Adds the terms of query `row`, token `seen_` + k, to its logits [P, B, H, 1, row + 1].
  void AddTerms(const at::Tensor& query, int64_t row, at::Tensor& logits) const;

  const Encoding& encoding_;
  const int64_t block_;
  const int64_t heads_;
  const int64_t head_size_;
  const at::Tensor positions_;
  const int64_t rows_at_once_;
  int64_t seen_ = 0;
  // [P * B * H, T, dh]; keys are rotated.
  at::Tensor keys_, values_;
  // Of the rows [first_row_, first_row_ + rows_at_once_) and the columns up to the last of them.
  AttentionTerms terms_;
  int64_t first_row_ = 0;
  int64_t end_row_ = 0;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_ATTENTION_CACHE_H_
