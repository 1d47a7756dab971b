// Causal attention as an encoding's decorator: tokens attend to themselves and to those before
// them.
#ifndef LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_
#define LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_

#include <cstdint>
#include <memory>

#include "models/encodings/encoding.h"

namespace lengthwise::models {

// The encoding whose logits' term is `inner`'s, and minus infinity for keys behind the query.
// Everything else is `inner`'s.
std::unique_ptr<Encoding> MakeCausal(std::unique_ptr<Encoding> inner);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CAUSAL_H_
