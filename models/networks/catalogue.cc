#include "models/networks/catalogue.h"

#include "models/networks/causal_decoder.h"
#include "models/networks/encoder.h"
#include "models/networks/graph_network.h"
#include "models/networks/layerwise_encoder.h"
#include "models/networks/positional_attention.h"

namespace lengthwise::models {

absl::Span<const NetworkEntry* const> NetworkEntries() {
  static const auto& entries = *new std::vector<const NetworkEntry*>{
      &EncoderEntry(),      &LayerwiseEncoderEntry(), &PositionalAttentionEntry(),
      &GraphNetworkEntry(), &CausalDecoderEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
