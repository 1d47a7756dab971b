#include "catalogue/entry.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "catalogue/suggestion.h"

namespace lengthwise::catalogue {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

absl::string_view TypeName(const ParameterValue& value) {
  return std::visit(
      Overloaded{[](bool) { return "true or false"; }, [](int64_t) { return "an integer"; },
                 [](double) { return "a number"; }, [](const std::string&) { return "a string"; }},
      value);
}

std::string Quoted(const ParameterValue& value) {
  const std::string text = FormatValue(value);
  return std::holds_alternative<std::string>(value) ? absl::StrCat("\"", text, "\"") : text;
}

// Converts `given` to the type of `wanted`. Returns nullopt if the conversion would lose
// information.
std::optional<ParameterValue> Converted(const ParameterValue& given, const ParameterValue& wanted) {
  if (given.index() == wanted.index()) return given;
  if (std::holds_alternative<int64_t>(wanted) && std::holds_alternative<double>(given)) {
    const double number = std::get<double>(given);
    // Above 2^53 a double no longer identifies a single integer.
    if (std::trunc(number) == number && std::abs(number) <= 0x1p53) {
      return static_cast<int64_t>(number);
    }
  }
  if (std::holds_alternative<double>(wanted) && std::holds_alternative<int64_t>(given)) {
    return static_cast<double>(std::get<int64_t>(given));
  }
  return std::nullopt;
}

// Returns the problem with a value of the right type; empty if there is none.
std::string LimitProblem(const ParameterEntry& entry, const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (entry.allowed.empty() || absl::c_linear_search(entry.allowed, *text)) return "";
    return absl::StrCat("unknown value \"", *text, "\"", Suggestion(*text, entry.allowed));
  }
  if (std::holds_alternative<bool>(value)) return "";
  const double number = std::holds_alternative<double>(value)
                            ? std::get<double>(value)
                            : static_cast<double>(std::get<int64_t>(value));
  // Written so that a NaN is outside every limit.
  const bool above = !entry.minimum || number >= *entry.minimum;
  const bool below = !entry.maximum || number <= *entry.maximum;
  if (above && below && !std::isnan(number)) return "";
  std::string accepted;
  if (entry.minimum && entry.maximum) {
    accepted = absl::StrCat(FormatValue(*entry.minimum), " to ", FormatValue(*entry.maximum));
  } else if (entry.minimum) {
    accepted = absl::StrCat("at least ", FormatValue(*entry.minimum));
  } else if (entry.maximum) {
    accepted = absl::StrCat("at most ", FormatValue(*entry.maximum));
  } else {
    accepted = "a number";
  }
  return absl::StrCat("got ", FormatValue(value), ", accepted: ", accepted);
}

}  // namespace

const ParameterValue& Parameters::At(absl::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::fprintf(stderr, "no parameter \"%.*s\"\n", static_cast<int>(name.size()), name.data());
    std::abort();
  }
  return found->second;
}

bool Parameters::Bool(absl::string_view name) const { return std::get<bool>(At(name)); }
int64_t Parameters::Int(absl::string_view name) const { return std::get<int64_t>(At(name)); }
double Parameters::Double(absl::string_view name) const { return std::get<double>(At(name)); }
const std::string& Parameters::String(absl::string_view name) const {
  return std::get<std::string>(At(name));
}

void Parameters::Set(std::string name, ParameterValue value) {
  values_.insert_or_assign(std::move(name), std::move(value));
}

Parameters Resolve(const Entry& entry, const Parameters& given, absl::string_view path,
                   std::vector<Problem>& problems) {
  Parameters resolved;
  std::vector<std::string> names;
  for (const ParameterEntry& parameter : entry.parameters) {
    resolved.Set(parameter.name, parameter.default_value);
    names.push_back(parameter.name);
  }
  for (const auto& [name, value] : given.values()) {
    const std::string field = absl::StrCat(path, ".", name);
    const auto found = absl::c_find_if(
        entry.parameters, [&name = name](const ParameterEntry& p) { return p.name == name; });
    if (found == entry.parameters.end()) {
      AddProblem(problems, field,
                 names.empty() ? absl::StrCat("\"", entry.name, "\" has no parameters")
                               : absl::StrCat("\"", entry.name, "\" has no such parameter",
                                              Suggestion(name, names)));
      continue;
    }
    std::optional<ParameterValue> converted = Converted(value, found->default_value);
    if (!converted) {
      AddProblem(problems, field, "got ", Quoted(value), ", expected ",
                 TypeName(found->default_value));
      continue;
    }
    if (const std::string problem = LimitProblem(*found, *converted); !problem.empty()) {
      AddProblem(problems, field, problem);
      continue;
    }
    resolved.Set(name, *std::move(converted));
  }
  return resolved;
}

std::string FormatValue(const ParameterValue& value) {
  return std::visit(Overloaded{[](bool b) { return std::string(b ? "true" : "false"); },
                               [](int64_t i) { return absl::StrCat(i); },
                               [](double d) {
                                 char buffer[64];
                                 const double size = std::abs(d);
                                 const bool plain = d == 0 || (size >= 1e-5 && size < 1e15);
                                 const auto format = plain ? std::chars_format::fixed
                                                           : std::chars_format::scientific;
                                 const auto end =
                                     std::to_chars(buffer, buffer + sizeof buffer, d, format);
                                 return std::string(buffer, end.ptr);
                               },
                               [](const std::string& s) { return s; }},
                    value);
}

namespace {

// Explains names such as "randomized_relative": tables put a parameter that is switched on before
// the entry's name, but specifications write the two apart. Empty for other names.
std::string SwitchedOn(absl::Span<const Entry* const> entries, absl::string_view name) {
  for (const Entry* entry : entries) {
    for (const ParameterEntry& parameter : entry->parameters) {
      if (std::holds_alternative<bool>(parameter.default_value) &&
          name == absl::StrCat(parameter.name, "_", entry->name)) {
        return absl::StrCat("; write {name: ", entry->name, ", ", parameter.name, ": true}");
      }
    }
  }
  return "";
}

}  // namespace

std::optional<size_t> Find(absl::Span<const Entry* const> entries, absl::string_view name,
                           absl::string_view kind, absl::string_view path,
                           std::vector<Problem>& problems) {
  std::vector<std::string> names;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i]->name == name) return i;
    names.push_back(entries[i]->name);
  }
  std::string hint = SwitchedOn(entries, name);
  if (hint.empty()) hint = Suggestion(name, names);
  AddProblem(problems, path, "unknown ", kind, " \"", name, "\"", hint);
  return std::nullopt;
}

}  // namespace lengthwise::catalogue
