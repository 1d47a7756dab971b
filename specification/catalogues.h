// The catalogues that a specification refers to by name, and the catalogue of protocols.
#ifndef LENGTHWISE_SPECIFICATION_CATALOGUES_H_
#define LENGTHWISE_SPECIFICATION_CATALOGUES_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/schedules/catalogue.h"
#include "proto/specification.pb.h"
#include "tasks/catalogue.h"

namespace lengthwise::specification {

// The paper's released code where it differs from the text. Each part is written as a
// specification. Used for `compatibility: reference_code`.
struct ReferenceCode {
  // Parameters of networks and encodings. A component that sets `randomized` applies only to
  // encodings with that value.
  v1::ExperimentSpecification components;
  // Network parameters that apply with certain encodings only (overrides.h), by group.
  std::vector<v1::ExperimentSpecification> networks_with_encodings;
  // Learning rates, training and evaluation when training.lengths covers several lengths.
  v1::ExperimentSpecification several_lengths;
};

// A paper's experimental setup: defaults for a specification, by name. A new protocol is a file in
// protocols/. Has no `parameters`: to override a value, a user sets the field.
struct ProtocolEntry : catalogue::Entry {
  // A user's specification without name and protocol. If an axis names a component several times,
  // the first one provides the defaults for users' components of that name.
  v1::ExperimentSpecification defaults;
  // Absent if the authors released no code.
  std::optional<ReferenceCode> reference_code = std::nullopt;
};

// The files of protocols/, sorted by name.
extern const char* const kProtocols[4];
// Sorted by name. Static lifetime.
absl::Span<const ProtocolEntry* const> ProtocolEntries();

// A set of catalogues. The viewed entries must outlive it. Tests substitute their own.
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
