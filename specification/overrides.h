// Resolves ExperimentSpecification.network_overrides: network parameters that depend on the
// encoding.
#ifndef LENGTHWISE_SPECIFICATION_OVERRIDES_H_
#define LENGTHWISE_SPECIFICATION_OVERRIDES_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "models/networks/catalogue.h"
#include "proto/specification.pb.h"
#include "specification/components.h"
#include "specification/findings.h"

namespace lengthwise::specification {

struct OverriddenNetwork {
  Choice choice;
  std::string path;  // field of the override's network, for errors
};

// Networks changed by an override, keyed by the indices of network and encoding on their axes.
using OverriddenNetworks = std::map<std::pair<size_t, size_t>, OverriddenNetwork>;

// Adds overrides that the released code implies. A reading names encodings and networks: each
// network with a name in the reading gets the reading's parameters, in combination with each
// encoding that has the name and parameters of one of the reading's. Keeps network parameters that
// differ from the catalogue's default, and existing overrides. Expects resolved axes.
void AddCodeOverrides(absl::Span<const models::NetworkEntry* const> entries,
                      absl::Span<const v1::ExperimentSpecification> readings,
                      v1::ExperimentSpecification& specification);

// Resolves the overrides and writes their labels and values into them. Reports unknown labels,
// names and parameters, wrong values, files, and duplicate overrides. Expects resolved axes.
OverriddenNetworks ResolveOverrides(absl::Span<const models::NetworkEntry* const> entries,
                                    v1::ExperimentSpecification& specification, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_OVERRIDES_H_
