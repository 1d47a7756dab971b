#include "models/networks/catalogue.h"

#include "models/networks/encoder.h"
#include "models/networks/layerwise_encoder.h"

namespace lengthwise::models {

absl::Span<const NetworkEntry* const> NetworkEntries() {
  static const auto& entries = *new std::vector<const NetworkEntry*>{
      &EncoderEntry(),
      &LayerwiseEncoderEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
