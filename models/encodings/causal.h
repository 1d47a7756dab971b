// Causal attention as a decorator of encodings: tokens attend to themselves and earlier tokens.
#ifndef LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_
#define LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_

#include <cstdint>
#include <memory>

#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Adds minus infinity to the logits of keys after the query.
std::unique_ptr<Encoding> MakeCausal(std::unique_ptr<Encoding> inner);

// Causal attention with a prompt (prefix language model): the first `prompt` tokens see each other
// in both directions. Cheap to make for each group of examples; `inner` must outlive it.
class PromptMasked : public EncodingDecorator {
 public:
  PromptMasked(const Encoding& inner, int64_t heads, int64_t prompt)
      : EncodingDecorator(inner), heads_(heads), prompt_(prompt) {}

  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const override;
  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override;

 private:
  const int64_t heads_;
  const int64_t prompt_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_
