// Tokens that recurrent networks read.
#ifndef LENGTHWISE_MODELS_NETWORKS_RECURRENT_H_
#define LENGTHWISE_MODELS_NETWORKS_RECURRENT_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Puts steps * n computation tokens after the first `n` of `tokens` [P, B, n + m], of which the
// others are the empty token. The computation token's symbol is the empty token's, `empty`, which
// moves up by one, as in the published code. Returns `tokens` if `steps` is 0.
at::Tensor WithComputationTokens(const at::Tensor& tokens, int64_t n, int64_t steps, int64_t empty);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_RECURRENT_H_
