// Causal attention as a decorator of encodings: tokens attend to themselves and earlier tokens.
#ifndef LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_
#define LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_

#include <cstdint>
#include <memory>

#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Decorates `inner`: adds minus infinity to the logits of keys after the query, and forwards the
// rest.
std::unique_ptr<Encoding> MakeCausal(std::unique_ptr<Encoding> inner);

// Causal attention with a prompt (prefix language model): the first `prompt` tokens see each other
// in both directions. Cheap to make for each group of examples; `inner` must outlive it.
class PromptMasked : public Encoding {
 public:
  PromptMasked(const Encoding& inner, int64_t heads, int64_t prompt)
      : inner_(inner), heads_(heads), prompt_(prompt) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    return inner_.EmbeddingTerm(parameters, block, positions);
  }
  void Rotate(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
              at::Tensor& queries, at::Tensor& keys) const override {
    inner_.Rotate(parameters, block, positions, queries, keys);
  }
  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const override;
  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override;
  int64_t RowsAtOnce(int64_t members, int64_t tokens) const override {
    return inner_.RowsAtOnce(members, tokens);
  }
  bool SameInEveryBlock() const override { return inner_.SameInEveryBlock(); }
  at::Tensor Scaled(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                    int64_t first, const at::Tensor& qkv) const override {
    return inner_.Scaled(parameters, block, positions, first, qkv);
  }

  at::Tensor PositionsOfTerms(const at::Tensor& positions) const override {
    return inner_.PositionsOfTerms(positions);
  }

 private:
  const Encoding& inner_;
  const int64_t heads_;
  const int64_t prompt_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_
