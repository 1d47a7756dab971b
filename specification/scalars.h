// What the text of a scalar means, and how messages show what was given.
#ifndef LENGTHWISE_SPECIFICATION_SCALARS_H_
#define LENGTHWISE_SPECIFICATION_SCALARS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "specification/document.h"

namespace lengthwise::specification {

// A number, also as YAML writes those that are not finite: ".nan", "-.inf".
std::optional<double> ParseNumber(const std::string& text);

// "true" and "false", also capitalized, as in YAML 1.2.
std::optional<bool> ParseBool(absl::string_view text);

// What was given, as a message shows it: `3`, `"many"`, `a list`; long texts are cut.
std::string Shown(const Node& node);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_SCALARS_H_
