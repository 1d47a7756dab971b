// Networks whose parameters depend on the encoding: ExperimentSpecification.network_overrides.
#ifndef LENGTHWISE_SPECIFICATION_OVERRIDES_H_
#define LENGTHWISE_SPECIFICATION_OVERRIDES_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/networks/catalogue.h"
#include "proto/specification.pb.h"
#include "specification/components.h"
#include "specification/findings.h"

namespace lengthwise::specification {

struct OverriddenNetwork {
  Choice choice;
  std::string path;  // of the override's network, for what is found wrong with it
};

// By the places of a network and an encoding on their axes: the network with that encoding, where
// an override changes it.
using OverriddenNetworks = std::map<std::pair<size_t, size_t>, OverriddenNetwork>;

// Adds the released code's overrides. A reading is a specification of encodings and networks: every
// network of its networks' names gets their parameters with every encoding that has its encodings'
// name and parameters. A parameter that the network has with another value than the catalogue's
// default stays, and so does an override that is there. The axes of `specification` are resolved.
void AddCodeOverrides(absl::Span<const models::NetworkEntry* const> entries,
                      absl::Span<const v1::ExperimentSpecification> readings,
                      v1::ExperimentSpecification& specification);

// Resolves the overrides, writes their labels into them, and finds unknown labels, names and
// parameters, wrong values, and overrides that stand twice. The axes of `specification` are
// resolved.
OverriddenNetworks ResolveOverrides(absl::Span<const models::NetworkEntry* const> entries,
                                    v1::ExperimentSpecification& specification, Findings& findings);

// Finds the override of a network with an encoding. The specification outlives it, unchanged.
class NetworkOverrides {
 public:
  explicit NetworkOverrides(const v1::ExperimentSpecification& specification);

  // The network as the trials with the encoding have it.
  v1::Component Applied(const v1::Component& network, const v1::Component& encoding) const;

 private:
  // By the labels of network and encoding.
  std::map<std::pair<absl::string_view, absl::string_view>, const v1::NetworkOverride*> by_labels_;
};

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_OVERRIDES_H_
