#include "models/networks/catalogue.h"

#include "models/networks/causal_decoder.h"
#include "models/networks/encoder.h"
#include "models/networks/layerwise_encoder.h"

namespace lengthwise::models {

absl::Span<const NetworkEntry* const> NetworkEntries() {
  static const auto& entries = *new std::vector<const NetworkEntry*>{
      &EncoderEntry(),
      &LayerwiseEncoderEntry(),
      &CausalDecoderEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
