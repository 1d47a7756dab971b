#include "specification/catalogues.h"

#include "models/optimizers/catalogue.h"

namespace lengthwise::specification {

// All protocols, sorted by name: a line declares the function that a protocol's file defines, and
// lists its entry.
// clang-format off
#define LENGTHWISE_PROTOCOLS(PROTOCOL) \
  PROTOCOL(DecimalAddition) \
  PROTOCOL(LatinSquare) \
  PROTOCOL(PositionalAttention) \
  PROTOCOL(RandomizedPositionalEncodings)
// clang-format on

#define LENGTHWISE_DECLARE(Name) const ProtocolEntry& Name();
LENGTHWISE_PROTOCOLS(LENGTHWISE_DECLARE)
#undef LENGTHWISE_DECLARE

absl::Span<const ProtocolEntry* const> ProtocolEntries() {
#define LENGTHWISE_ENTRY(Name) &Name(),
  static const ProtocolEntry* const kEntries[] = {LENGTHWISE_PROTOCOLS(LENGTHWISE_ENTRY)};
#undef LENGTHWISE_ENTRY
  return kEntries;
}

Catalogues AllCatalogues() {
  return {.tasks = tasks::EveryTaskEntry(),
          .networks = models::EveryNetworkEntry(),
          .encodings = models::EveryEncodingEntry(),
          .optimizers = models::OptimizerEntries(),
          .schedules = models::ScheduleEntries(),
          .protocols = ProtocolEntries()};
}

}  // namespace lengthwise::specification
