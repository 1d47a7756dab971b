// The parameter of encodings that may come with a causal mask. No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_CAUSAL_ENTRY_H_
#define LENGTHWISE_MODELS_ENCODINGS_CAUSAL_ENTRY_H_

#include "catalogue/entry.h"

namespace lengthwise::models {

inline catalogue::ParameterEntry CausalParameter() {
  return {.name = "causal",
          .default_value = false,
          .documentation =
              "Tokens attend to themselves and those before them alone, from which a "
              "network can tell their order."};
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CAUSAL_ENTRY_H_
