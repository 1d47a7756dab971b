#include "specification/protocols.h"

#include "specification/protocols/decimal_addition.h"
#include "specification/protocols/latin_square.h"
#include "specification/protocols/positional_attention.h"
#include "specification/protocols/randomized_positional_encodings.h"

namespace lengthwise::specification {

absl::Span<const ProtocolEntry* const> ProtocolEntries() {
  static const ProtocolEntry* const kEntries[] = {
      &DecimalAddition(),
      &LatinSquare(),
      &PositionalAttention(),
      &RandomizedPositionalEncodings(),
  };
  return kEntries;
}

}  // namespace lengthwise::specification
