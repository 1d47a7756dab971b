#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "catalogue/suggestion.h"
#include "google/protobuf/message.h"
#include "platform/printable_text.h"
#include "specification/document.h"
#include "specification/integer_ranges.h"

namespace lengthwise::specification {
namespace {

// Also accepts YAML's non-finite numbers: ".nan", "-.inf". Later checks reject them by field.
std::optional<double> ParseNumber(const std::string& text) {
  absl::string_view word = text;
  if (word == ".nan" || word == ".NaN" || word == ".NAN") word = "nan";
  if (word == ".inf" || word == "+.inf" || word == ".Inf" || word == ".INF") word = "inf";
  if (word == "-.inf" || word == "-.Inf" || word == "-.INF") word = "-inf";
  double number;
  if (!absl::SimpleAtod(word, &number)) return std::nullopt;
  return number;
}

// Accepts the spellings of YAML 1.2: "true", "True", "TRUE".
std::optional<bool> ParseBool(absl::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

// Formats a value for an error: `3`, `"many"`, `a list`. Truncates long text.
std::string Shown(const Node& node) {
  constexpr size_t kMostShown = 60;
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kPlain:
      if (node.text.size() <= kMostShown && (ParseNumber(node.text) || ParseBool(node.text))) {
        return node.text;
      }
      [[fallthrough]];
    case Node::Kind::kQuoted:
      break;
  }
  if (node.text.size() <= kMostShown) return absl::StrCat("\"", node.text, "\"");
  return absl::StrCat("\"", platform::Utf8Prefix(node.text, kMostShown), "...\"");
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// An axis written as an empty list is an empty grid, not a request for the default.
bool MustNotBeEmpty(absl::string_view path) {
  static constexpr absl::string_view kAxes[] = {
      "tasks", "networks",     "encodings",  "learning_rates",
      "seeds", "weight_seeds", "data_seeds", "evaluation.lengths"};
  return absl::c_linear_search(kAxes, path);
}

struct IntegerLimits {
  absl::int128 min;
  absl::int128 max;
};

std::optional<IntegerLimits> LimitsOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return IntegerLimits{std::numeric_limits<int32_t>::min(),
                           std::numeric_limits<int32_t>::max()};
    case FieldDescriptor::CPPTYPE_INT64:
      return IntegerLimits{std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max()};
    case FieldDescriptor::CPPTYPE_UINT64:
      return IntegerLimits{0, std::numeric_limits<uint64_t>::max()};
    default:
      return std::nullopt;
  }
}

std::string Text(absl::int128 number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

// An integer, or a range if `ranges` are accepted. Nullopt for other nodes.
std::optional<IntegerRange> RangeOf(const Node& node, bool ranges) {
  if (!node.IsScalar()) return std::nullopt;
  if (const auto integer = ParseInteger(node.text)) return IntegerRange{*integer, *integer, 1};
  return ranges ? ParseRange(node.text) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(Parsed& parsed) : parsed_(parsed) {}

  void ReadMessage(const Node& node, const std::string& path, Message& message) {
    if (!Visit()) return;
    if (node.kind == Node::Kind::kNull) return;
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    if (type.full_name() == "lengthwise.v1.Component") {
      ReadComponent(node, path, static_cast<v1::Component&>(message));
      return;
    }
    if (type.full_name() == "lengthwise.v1.LengthRange" && node.kind != Node::Kind::kMap) {
      ReadLengthRange(node, path, static_cast<v1::LengthRange&>(message));
      return;
    }
    if (node.kind != Node::Kind::kMap) {
      Unread(path, "got ", Shown(node), ", expected fields and their values");
      return;
    }
    std::unordered_set<const FieldDescriptor*> seen;
    for (const auto& [name, value] : node.children) {
      if (parsed_.problems.size() >= kEnoughProblems) return;
      const FieldDescriptor* field = type.FindFieldByName(name);
      if (field == nullptr) field = type.FindFieldByCamelcaseName(name);
      if (field == nullptr) {
        const UnknownField unknown = DescribeUnknownField(type, name);
        Unread(Below(path, name), "unknown field", unknown.suggestion);
        if (!unknown.probably.empty()) parsed_.unread.push_back(Below(path, unknown.probably));
      } else if (!seen.insert(field).second) {
        Unread(Below(path, field->name()), "given twice");
      } else {
        ReadField(*value, Below(path, field->name()), *field, message);
      }
    }
  }

 private:
  // Counts a value. Returns false when the budget of values is exhausted: an alias visits its
  // anchor's nodes again, so a small document may have very many values.
  bool Visit() {
    if (++visits_ == kMaxNodes + 1) {
      Unread("", "more than ", kMaxNodes, " values, counting those of aliases");
    }
    return visits_ <= kMaxNodes;
  }

  // The description is absl::StrCat of the rest.
  template <typename... Description>
  void Unread(const std::string& path, const Description&... description) {
    AddProblem(parsed_.problems, path, description...);
    if (!path.empty()) parsed_.unread.push_back(path);
  }

  void ReadField(const Node& node, const std::string& path, const FieldDescriptor& field,
                 Message& message) {
    if (node.kind == Node::Kind::kNull) return;
    if (!field.is_repeated()) {
      ReadValue(node, path, field, message);
      return;
    }
    if (node.kind != Node::Kind::kList) {
      const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      ReadValue(node, is_message ? absl::StrCat(path, "[0]") : path, field, message);
      return;
    }
    if (node.children.empty() && MustNotBeEmpty(path)) {
      Unread(path, "got an empty list, expected at least one value");
    }
    for (size_t i = 0; i < node.children.size() && visits_ <= kMaxNodes; ++i) {
      ReadValue(*node.children[i].second, absl::StrCat(path, "[", i, "]"), field, message);
    }
  }

  // Reads one value of a field. Appends to repeated fields.
  void ReadValue(const Node& node, const std::string& path, const FieldDescriptor& field,
                 Message& message) {
    if (!Visit()) return;
    const auto& reflection = *message.GetReflection();
    if (const auto limits = LimitsOf(field)) {
      ReadIntegers(node, path, field, *limits, message);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Message* value = field.is_repeated() ? reflection.AddMessage(&message, &field)
                                           : reflection.MutableMessage(&message, &field);
      if (field.is_repeated() && node.kind == Node::Kind::kNull) {
        Unread(path, "got nothing, expected a name");
      }
      ReadMessage(node, path, *value);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      std::optional<double> number;
      if (node.IsScalar()) number = ParseNumber(node.text);
      if (!number) Unread(path, "got ", Shown(node), ", expected a number");
      if (field.is_repeated()) {
        reflection.AddDouble(&message, &field, number.value_or(0));
      } else if (number) {
        reflection.SetDouble(&message, &field, *number);
      }
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      std::optional<bool> truth;
      if (node.kind == Node::Kind::kPlain) truth = ParseBool(node.text);
      if (truth) {
        reflection.SetBool(&message, &field, *truth);
      } else {
        Unread(path, "got ", Shown(node), ", expected true or false");
      }
    } else if (!node.IsScalar()) {
      Unread(path, "got ", Shown(node), ", expected text");
    } else {
      reflection.SetString(&message, &field, node.text);
    }
  }

  void ReadIntegers(const Node& node, const std::string& path, const FieldDescriptor& field,
                    const IntegerLimits& limits, Message& message) {
    const bool list = field.is_repeated();
    const std::optional<IntegerRange> range = RangeOf(node, /*ranges=*/list);
    if (!range) {
      const bool wrong_range = list && node.IsScalar() && LooksLikeRange(node.text);
      Unread(path, "got ", Shown(node), ", expected ",
             wrong_range ? "a range such as \"0..9\" or \"5..60 step 5\""
             : list      ? "an integer or a range such as \"0..9\""
                         : "an integer");
      return;
    }
    if (range->first < limits.min || range->last > limits.max) {
      Unread(path, "got ", Shown(node), ", expected ", list ? "integers" : "an integer", " from ",
             Text(limits.min), " to ", Text(limits.max));
      return;
    }
    const auto& reflection = *message.GetReflection();
    const int64_t present = list ? reflection.FieldSize(message, &field) : 0;
    if (list && range->size() + present > kMaxListValues) {
      Unread(path, "got ", Shown(node), ": ", Text(range->size()),
             " values, expected a list of at most ", kMaxListValues);
      return;
    }
    for (absl::int128 value = range->first; value <= range->last; value += range->step) {
      switch (field.cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT32:
          list ? reflection.AddInt32(&message, &field, static_cast<int32_t>(value))
               : reflection.SetInt32(&message, &field, static_cast<int32_t>(value));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          list ? reflection.AddInt64(&message, &field, static_cast<int64_t>(value))
               : reflection.SetInt64(&message, &field, static_cast<int64_t>(value));
          break;
        default:
          list ? reflection.AddUInt64(&message, &field, static_cast<uint64_t>(value))
               : reflection.SetUInt64(&message, &field, static_cast<uint64_t>(value));
      }
    }
  }

  void ReadLengthRange(const Node& node, const std::string& path, v1::LengthRange& lengths) {
    const std::optional<IntegerRange> range = RangeOf(node, /*ranges=*/true);
    constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
    if (!range || range->step != 1 || range->first < -kMost || range->last > kMost) {
      Unread(path, "got ", Shown(node), ", expected a range such as \"1..20\"");
      return;
    }
    lengths.set_min(static_cast<int32_t>(range->first));
    lengths.set_max(static_cast<int32_t>(range->last));
  }

  void ReadComponent(const Node& node, const std::string& path, v1::Component& component) {
    if (node.IsScalar()) {
      component.set_name(node.text);
      return;
    }
    if (node.kind != Node::Kind::kMap) {
      Unread(path, "got ", Shown(node), ", expected a name, or a name with parameters");
      return;
    }
    // Of the others, only a formula's parameters, whose settings may contain one list, and the
    // arguments of a user's module may be maps or lists.
    const auto is = [&](absl::string_view name) {
      return absl::c_any_of(node.children, [&](const auto& child) {
        return child.first == "name" && child.second->text == name;
      });
    };
    const int depth = is("formula") ? 2 : is("python") ? 8 : 0;
    std::unordered_set<std::string> seen;
    for (const auto& [name, value] : node.children) {
      const std::string field = Below(path, name);
      if (!Visit()) return;
      if (!seen.insert(name).second) {
        Unread(field, "given twice");
      } else if (value->kind == Node::Kind::kNull) {
        // Treated as unset.
      } else if (name == "parameters") {
        ReadParameters(*value, path, depth, component);
      } else if (name != "name" && name != "label") {
        ReadParameter(*value, field, name, depth, component);
      } else if (!value->IsScalar()) {
        Unread(field, "got ", Shown(*value), ", expected text");
      } else if (name == "name") {
        component.set_name(value->text);
      } else {
        component.set_label(value->text);
      }
    }
  }

  void ReadParameters(const Node& node, const std::string& path, int depth,
                      v1::Component& component) {
    if (node.kind != Node::Kind::kMap) {
      Unread(Below(path, "parameters"), "got ", Shown(node),
             ", expected parameters and their values");
      return;
    }
    for (const auto& [name, value] : node.children) {
      if (!Visit()) return;
      if (value->kind != Node::Kind::kNull) {
        ReadParameter(*value, Below(path, name), name, depth, component);
      }
    }
  }

  // The value may be maps and lists nested at most `depth` deep.
  void ReadParameter(const Node& node, const std::string& path, const std::string& name, int depth,
                     v1::Component& component) {
    if (component.parameters().contains(name)) {
      Unread(path, "given twice");
      return;
    }
    google::protobuf::Value value;
    // An encoding beside another is a component, perhaps with a list.
    if (ReadScalars(node, path, name == "beside" ? std::max(depth, 2) : depth, value)) {
      (*component.mutable_parameters())[name] = std::move(value);
    }
  }

  // Reads a scalar, or maps and lists of scalars nested at most `depth` deep. Returns false if it
  // reported a problem.
  bool ReadScalars(const Node& node, const std::string& path, int depth,
                   google::protobuf::Value& value) {
    if (!Visit()) return false;
    if (!node.IsScalar() && (depth == 0 || node.kind == Node::Kind::kNull)) {
      Unread(path, "got ", Shown(node), ", expected a number, true, false or text");
      return false;
    }
    const bool plain = node.kind == Node::Kind::kPlain;
    if (node.kind == Node::Kind::kMap) {
      auto& fields = *value.mutable_struct_value()->mutable_fields();
      for (const auto& [name, child] : node.children) {
        if (fields.contains(name)) {
          Unread(Below(path, name), "given twice");
          return false;
        }
        if (!ReadScalars(*child, Below(path, name), depth - 1, fields[name])) return false;
      }
    } else if (node.kind == Node::Kind::kList) {
      auto& list = *value.mutable_list_value();
      for (const auto& [name, child] : node.children) {
        if (!ReadScalars(*child, path, depth - 1, *list.add_values())) return false;
      }
    } else if (const auto number = ParseNumber(node.text); plain && number) {
      value.set_number_value(*number);
    } else if (const auto flag = ParseBool(node.text); plain && flag) {
      value.set_bool_value(*flag);
    } else {
      value.set_string_value(node.text);
    }
    return true;
  }

  Parsed& parsed_;
  int64_t visits_ = 0;
};

}  // namespace

Parsed ReadSpecification(const Document& document) {
  Parsed parsed;
  if (document.root == nullptr || document.root->kind == Node::Kind::kNull) {
    parsed.readable = false;
    AddProblem(parsed.problems, "", "the specification is empty; it needs at least a name");
    return parsed;
  }
  if (document.root->kind != Node::Kind::kMap) parsed.readable = false;
  Reader(parsed).ReadMessage(*document.root, "", parsed.specification);
  return parsed;
}

std::string Below(absl::string_view parent, absl::string_view name) {
  return parent.empty() ? std::string(name) : absl::StrCat(parent, ".", name);
}

void ForEachField(
    const google::protobuf::Descriptor& message, const std::string& parent,
    absl::FunctionRef<void(const FieldDescriptor& field, const std::string& path)> take) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string path = Below(parent, field.name());
    take(field, path);
    // A component has parameters instead of fields, and a list's elements no single path.
    if (field.message_type() != nullptr && !field.is_repeated() &&
        field.message_type() != v1::Component::descriptor()) {
      ForEachField(*field.message_type(), path, take);
    }
  }
}

UnknownField DescribeUnknownField(const google::protobuf::Descriptor& message,
                                  absl::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  UnknownField unknown{.suggestion = catalogue::Suggestion(name, names)};
  if (const std::string* nearest = catalogue::Nearest(name, names)) {
    unknown.probably = *nearest;
    return unknown;
  }
  // It may be a field of another part of the specification.
  const google::protobuf::Descriptor& top = *v1::ExperimentSpecification::descriptor();
  std::map<std::string, std::vector<std::string>> paths;
  ForEachField(top, "", [&](const FieldDescriptor& field, const std::string& path) {
    paths[field.name()].push_back(path);
  });
  names.clear();
  for (const auto& [accepted, unused] : paths) names.push_back(accepted);
  if (const std::string* nearest = catalogue::Nearest(name, names)) {
    const std::vector<std::string>& places = paths[*nearest];
    unknown.suggestion =
        absl::StrCat("; did you mean \"", absl::StrJoin(places, "\" or \""), "\"?");
    if (&message == &top && places.size() == 1) unknown.probably = places[0];
  }
  return unknown;
}

}  // namespace lengthwise::specification
