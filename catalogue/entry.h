// A catalogue entry describes a task, encoding, network, optimizer or protocol: its name, its
// parameters with their limits, and its documentation. Entries do not use LibTorch, so that server
// and client can list, validate and complete names without linking the implementations.
#ifndef LENGTHWISE_CATALOGUE_ENTRY_H_
#define LENGTHWISE_CATALOGUE_ENTRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lengthwise::catalogue {

using ParameterValue = std::variant<bool, int64_t, double, std::string>;

// One parameter of an entry. The alternative that `default_value` holds is the parameter's type.
struct ParameterEntry {
  std::string name;
  ParameterValue default_value;
  std::string documentation;
  // Inclusive limits of a number; absent means unlimited.
  std::optional<double> minimum = std::nullopt;
  std::optional<double> maximum = std::nullopt;
  // Accepted values of a string. Empty: any.
  std::vector<std::string> allowed = {};
  // True: resolved specifications name the parameter only where it differs from its default, so
  // that those from before it existed stay the same.
  bool omitted = false;
};

struct Entry {
  std::string name;           // as specifications write it: "sin_cos"
  std::string title;          // as tables and figures print it: "sin/cos"
  std::string documentation;  // one to four sentences; names the paper's section where there is one
  std::vector<ParameterEntry> parameters = {};
};

// A mistake in a specification. `field` is a path such as
// "encodings[1].max_position".
struct Problem {
  std::string field;
  std::string description;  // what was given, what is accepted
};

// The description is absl::StrCat of the rest.
template <typename... Description>
void AddProblem(std::vector<Problem>& problems, absl::string_view field,
                const Description&... description) {
  problems.push_back({std::string(field), absl::StrCat(description...)});
}

// Values for all parameters of one entry. The user's values take precedence over the protocol's
// defaults, and those over the entry's. Reading an unknown parameter, or one with another type, is
// a programming error and aborts.
class Parameters {
 public:
  Parameters() = default;

  bool Bool(absl::string_view name) const;
  int64_t Int(absl::string_view name) const;
  double Double(absl::string_view name) const;
  const std::string& String(absl::string_view name) const;

  const std::map<std::string, ParameterValue, std::less<>>& values() const { return values_; }
  void Set(std::string name, ParameterValue value);

 private:
  const ParameterValue& At(absl::string_view name) const;

  std::map<std::string, ParameterValue, std::less<>> values_;
};

// Returns the entry's defaults, overridden by `given`. Converts an integral double for an integer
// parameter (JSON and protocol buffers have no integers) and an integer for a double one. Appends
// each unknown name, wrong type and exceeded limit to `problems`, with the field
// "<path>.<parameter>"; such a parameter keeps its default.
Parameters Resolve(const Entry& entry, const Parameters& given, absl::string_view path,
                   std::vector<Problem>& problems);

// Formats a value: "true", "3", "0.001", "text". Doubles have the shortest form that parses back to
// the same value.
std::string FormatValue(const ParameterValue& value);

// Returns the index of `name` among `entries`. If it is absent, returns nullopt and appends to
// `problems`, for `kind` = "encoding": `unknown encoding "rotery"; did you mean "rope"?`.
std::optional<size_t> Find(absl::Span<const Entry* const> entries, absl::string_view name,
                           absl::string_view kind, absl::string_view path,
                           std::vector<Problem>& problems);

}  // namespace lengthwise::catalogue

#endif  // LENGTHWISE_CATALOGUE_ENTRY_H_
