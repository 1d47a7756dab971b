// Every catalogue that a specification refers to by name. Tests substitute their own.
#ifndef LENGTHWISE_SPECIFICATION_CATALOGUES_H_
#define LENGTHWISE_SPECIFICATION_CATALOGUES_H_

#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/schedules/catalogue.h"
#include "specification/protocols.h"
#include "tasks/catalogue.h"

namespace lengthwise::specification {

// A set of catalogues. The viewed entries must outlive it.
struct Catalogues {
  absl::Span<const tasks::TaskEntry* const> tasks;
  absl::Span<const models::NetworkEntry* const> networks;
  absl::Span<const models::EncodingEntry* const> encodings;
  absl::Span<const catalogue::Entry* const> optimizers;
  absl::Span<const models::ScheduleEntry* const> schedules;
  absl::Span<const ProtocolEntry* const> protocols;
};

// The catalogues compiled into this program.
Catalogues AllCatalogues();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_CATALOGUES_H_
