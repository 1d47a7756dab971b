// What a catalogue says of a task, an encoding, a network, an optimizer or a protocol: its name,
// its parameters and their limits, its documentation. Entries are free of LibTorch, so that the
// server and the client can list, validate and complete names without linking what the entries
// describe.
#ifndef LENGTHWISE_CATALOGUE_ENTRY_H_
#define LENGTHWISE_CATALOGUE_ENTRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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
  // The values a string may take; empty means any.
  std::vector<std::string> allowed = {};
};

struct Entry {
  std::string name;           // as specifications write it: "sin_cos"
  std::string title;          // as tables and figures print it: "sin/cos"
  std::string documentation;  // one to four sentences; names the paper's section where there is one
  std::vector<ParameterEntry> parameters = {};
};

// One thing that is wrong with what a user wrote. `field` is a path such as
// "encodings[1].max_position".
struct Problem {
  std::string field;
  std::string description;  // what was given, what is accepted
};

// Values for all parameters of one entry: what the user set, over the protocol's defaults, over the
// entry's. Reading a parameter that the entry does not have, or with another type, is a programming
// error and aborts.
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

// Returns the entry's defaults, overridden by `given`. An integral double is taken for an integer
// parameter (JSON and protocol buffers know no integers) and an integer for a double one. Appends
// to `problems`, with field names
// "<path>.<parameter>", for every unknown name, wrong type and exceeded limit; such a parameter
// keeps its default.
Parameters Resolve(const Entry& entry, const Parameters& given, absl::string_view path,
                   std::vector<Problem>& problems);

// "true", "3", "0.001", "text"; doubles in the shortest form that reads back the same.
std::string FormatValue(const ParameterValue& value);

// Returns the index of `name` among `entries`; where it is absent appends to `problems` a line such
// as `unknown encoding "rotery"; did you mean "rope"?` for `kind` = "encoding", and returns
// nullopt.
std::optional<size_t> Find(absl::Span<const Entry* const> entries, absl::string_view name,
                           absl::string_view kind, absl::string_view path,
                           std::vector<Problem>& problems);

}  // namespace lengthwise::catalogue

#endif  // LENGTHWISE_CATALOGUE_ENTRY_H_
