#include "models/networks/catalogue.h"

#include "models/networks/encoder.h"

namespace lengthwise::models {

absl::Span<const NetworkEntry* const> NetworkEntries() {
  static const auto& entries = *new std::vector<const NetworkEntry*>{
      &EncoderEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
