// Components: from a name and some parameters to a catalogue's entry and all parameters.
#ifndef LENGTHWISE_SPECIFICATION_COMPONENTS_H_
#define LENGTHWISE_SPECIFICATION_COMPONENTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/specification.pb.h"
#include "specification/findings.h"

namespace lengthwise::specification {

// What a component names.
struct Choice {
  size_t index = 0;  // of the entry in its catalogue
  catalogue::Parameters parameters;
};

using Components = google::protobuf::RepeatedPtrField<v1::Component>;

// Resolves components of one kind ("encoding") that stand at `path` ("encodings"), and writes all
// parameters and the labels into them. The result has one place for each component, empty where the
// name is unknown. Finds unknown names and parameters, wrong values, control characters in text,
// components that are the same, labels that are malformed or the same.
std::vector<std::optional<Choice>> ResolveComponents(
    absl::Span<const catalogue::Entry* const> entries, absl::string_view kind,
    absl::string_view path, Components& components, Findings& findings);

// The same for a field that holds one component.
std::optional<Choice> ResolveComponent(absl::Span<const catalogue::Entry* const> entries,
                                       absl::string_view kind, absl::string_view path,
                                       v1::Component& component, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_COMPONENTS_H_
