#include "specification/field_names.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"

namespace lengthwise::specification {

std::string Below(absl::string_view parent, absl::string_view name) {
  return parent.empty() ? std::string(name) : absl::StrCat(parent, ".", name);
}

UnknownField DescribeUnknownField(const google::protobuf::Descriptor& message,
                                  absl::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  UnknownField unknown{.suggestion = catalogue::Suggestion(name, names)};
  for (const std::string& accepted : names) {
    if (absl::StrContains(unknown.suggestion, absl::StrCat("mean \"", accepted, "\""))) {
      unknown.probably = accepted;
    }
  }
  return unknown;
}

}  // namespace lengthwise::specification
