// Key-value cache of one attention layer, for sequences that are continued token by token: each
// token is computed once.
#ifndef LENGTHWISE_MODELS_ATTENTION_ATTENTION_CACHE_H_
#define LENGTHWISE_MODELS_ATTENTION_ATTENTION_CACHE_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Cache of one block for B sequences of at most T tokens. Allocates all 2 P B T d numbers at once,
// so that tokens are written in place and never copied. Not thread-safe.
class AttentionCache {
 public:
  // `encoding` is causal (MakeCausal), or lets the tokens of the first call see each other. It must
  // outlive the cache. `positions` [P, T] are the tokens' positions; [1, B, T], contiguous, if
  // sequences have their own, which may then be written until Attend appends their tokens. `like`
  // has the type and device of the features, which are `d_model` wide.
  AttentionCache(const Encoding& encoding, int64_t block, int64_t heads, int64_t d_model,
                 int64_t sequences, const at::Tensor& positions, const at::Tensor& like);

  // Appends k tokens and returns what models::Attend would for them, [P, B, k, d]. `qkv` [P, B, k,
  // 3 d] holds their queries, keys and values. Not differentiable.
  at::Tensor Attend(const ParameterSet& parameters, const at::Tensor& qkv);

 private:
  at::Tensor Append(const ParameterSet& parameters, const at::Tensor& given_qkv);
  // Makes `terms_` cover row `row`, and as many later rows as RowsAtOnce allows.
  void ProvideTerms(const ParameterSet& parameters, int64_t row);
  // Adds the terms of query `row` to its logits [P, B, H, 1, row + 1].
  void AddTerms(const at::Tensor& query, int64_t row, at::Tensor& logits) const;

  const Encoding& encoding_;
  const int64_t block_;
  const int64_t heads_;
  const int64_t head_size_;
  // True: sequences have their own positions, and each is a member here.
  const bool each_;
  const at::Tensor positions_;  // [P, T]
  const int64_t rows_at_once_;
  int64_t seen_ = 0;
  // [P * B * H, T, dh]; keys are stored rotated.
  at::Tensor keys_, values_;
  // Terms of rows [first_row_, end_row_) and of columns [0, end_row_).
  AttentionTerms terms_;
  int64_t first_row_ = 0;
  int64_t end_row_ = 0;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_ATTENTION_CACHE_H_
