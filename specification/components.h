// Resolves components: looks a name up in its catalogue and completes the parameters.
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

// A catalogue entry with complete parameters.
struct Choice {
  size_t index = 0;  // of the entry in its catalogue
  catalogue::Parameters parameters;
};

using Components = google::protobuf::RepeatedPtrField<v1::Component>;

// Resolves the components of one kind ("encoding") at the field `path` ("encodings"). Writes all
// parameters and the labels into them. The result has one element for each component, empty if the
// name is unknown.
//
// Reports unknown names and parameters, wrong values, control characters in text, duplicate
// components, and malformed or duplicate labels.
std::vector<std::optional<Choice>> ResolveComponents(
    absl::Span<const catalogue::Entry* const> entries, absl::string_view kind,
    absl::string_view path, Components& components, Findings& findings);

// ResolveComponents for a field that holds a single component.
std::optional<Choice> ResolveComponent(absl::Span<const catalogue::Entry* const> entries,
                                       absl::string_view kind, absl::string_view path,
                                       v1::Component& component, Findings& findings);

google::protobuf::Value ToValue(const catalogue::ParameterValue& parameter);

// Converts a component's parameters to the catalogues' representation. Expects a component that was
// resolved before. Numbers become doubles; catalogue::Resolve accepts them for integer parameters.
// Values other than numbers, text and booleans are skipped.
catalogue::Parameters ParametersOf(const v1::Component& component);

// Writes `positions: subset` as `randomized: true`, as older stored specifications do, so that both
// are the same trial. Returns false if the encoding also has `randomized: false`.
bool FoldPositions(v1::Component& encoding);

// Reads the named parameters of a user's formula, the encoding `formula` (formula_parameters.cc).
// Moves each value that is a number, a list or a map, and is not a catalogue parameter, into the
// entry's parameter "parameters", in the format of models/encodings/formula_definition.h. Leaves
// other components unchanged. `path` is the encoding's field.
void FoldFormulaParameters(const std::string& path, v1::Component& encoding, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_COMPONENTS_H_
