#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "catalogue/suggestion.h"
#include "google/protobuf/struct.pb.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/formula_definition.h"
#include "specification/components.h"

namespace lengthwise::specification {
namespace {

using google::protobuf::Value;
using models::FormulaParameter;

constexpr char kParameters[] = "parameters";

// A number in quotes, which is text.
bool IsQuotedNumber(const Value& value) {
  double number = 0;
  return value.kind_case() == Value::kStringValue &&
         absl::SimpleAtod(value.string_value(), &number);
}

std::string ExpectedNumber(const Value& value, absl::string_view expected) {
  if (!IsQuotedNumber(value)) return std::string(expected);
  return absl::StrCat("got the text \"", value.string_value(),
                      "\", expected a number: leave out the quotes");
}

// Reads the settings of one parameter of a formula.
class ParameterReader {
 public:
  ParameterReader(std::string path, Findings& findings)
      : path_(std::move(path)), findings_(findings) {}

  std::optional<FormulaParameter> Read(const std::string& name, const Value& value) {
    parameter_.name = name;
    switch (value.kind_case()) {
      case Value::kNumberValue:
        parameter_.initial = {value.number_value()};
        break;
      case Value::kListValue:
        parameter_.initial = Numbers(path_, value);
        parameter_.size = parameter_.initial.size();
        break;
      case Value::kStructValue: {
        const auto& fields = value.struct_value().fields();
        for (const auto& [setting, given] : std::map(fields.begin(), fields.end())) {
          Set(setting, given);
        }
        break;
      }
      default:
        Refuse(path_,
               ExpectedNumber(value,
                              "expected a number, a list of numbers or {per: head, initial: 1}"));
    }
    if (!sound_) return std::nullopt;
    if (std::string mistake = models::FormulaParameterMistake(parameter_); !mistake.empty()) {
      Refuse(path_, mistake);
      return std::nullopt;
    }
    return parameter_;
  }

 private:
  void Set(const std::string& setting, const Value& given) {
    const std::string field = absl::StrCat(path_, ".", setting);
    if (setting == "per") {
      static const std::vector<std::string> kinds = {"model", "head", "layer"};
      const auto found = absl::c_find(kinds, given.string_value());
      if (found == kinds.end()) {
        return Refuse(field, "expected model, head or layer",
                      catalogue::Suggestion(given.string_value(), kinds));
      }
      parameter_.per = static_cast<FormulaParameter::Per>(found - kinds.begin());
    } else if (setting == "initial") {
      parameter_.initial = Numbers(field, given);
    } else if (setting == "fixed") {
      if (given.kind_case() != Value::kBoolValue) return Refuse(field, "expected true or false");
      parameter_.fixed = given.bool_value();
    } else if (setting == "size") {
      const double size = given.number_value();
      if (!(size >= 1 && size <= models::kMaxFormulaValues && size == std::floor(size))) {
        return Refuse(field, ExpectedNumber(given, absl::StrCat("expected an integer from 1 to ",
                                                                models::kMaxFormulaValues)));
      }
      parameter_.size = static_cast<size_t>(size);
    } else if (setting == "stddev") {
      parameter_.stddev = given.number_value();
      if (!(parameter_.stddev > 0)) {
        Refuse(field, ExpectedNumber(given, "expected a number above 0"));
      }
    } else {
      Refuse(field, "unknown setting of a formula's parameter",
             catalogue::Suggestion(setting, {"fixed", "initial", "per", "size", "stddev"}));
    }
  }

  std::vector<double> Numbers(const std::string& field, const Value& given) {
    std::vector<double> numbers;
    const auto take = [&](const Value& value) {
      if (value.kind_case() == Value::kNumberValue && std::isfinite(value.number_value())) {
        numbers.push_back(value.number_value());
      } else {
        Refuse(field, ExpectedNumber(value, "expected a finite number or a list of them"));
      }
    };
    if (given.kind_case() != Value::kListValue) {
      take(given);
    } else if (given.list_value().values().empty()) {
      Refuse(field, "got an empty list, expected at least one number");
    } else {
      absl::c_for_each(given.list_value().values(), take);
    }
    return numbers;
  }

  template <typename... Description>
  void Refuse(const std::string& field, const Description&... description) {
    findings_.Add(field, description...);
    sound_ = false;
  }

  const std::string path_;
  Findings& findings_;
  FormulaParameter parameter_;
  bool sound_ = true;
};

}  // namespace

void FoldFormulaParameters(const std::string& path, v1::Component& encoding, Findings& findings) {
  const catalogue::Entry& entry = models::FormulaEntry();
  if (encoding.name() != entry.name) return;
  std::map<std::string, Value> own;
  for (const auto& [name, value] : encoding.parameters()) {
    const Value::KindCase kind = value.kind_case();
    if (name == kParameters && kind == Value::kStructValue) {
      // API clients may send all parameters in one map.
      own.insert(value.struct_value().fields().begin(), value.struct_value().fields().end());
    } else if ((kind == Value::kNumberValue || kind == Value::kListValue ||
                kind == Value::kStructValue || IsQuotedNumber(value)) &&
               absl::c_none_of(entry.parameters,
                               [&name = name](const auto& p) { return p.name == name; })) {
      own.emplace(name, value);
    }
  }
  if (own.empty()) return;
  const auto text = encoding.parameters().find(kParameters);
  if (text != encoding.parameters().end() && text->second.kind_case() == Value::kStringValue &&
      !text->second.string_value().empty()) {
    findings.Add(absl::StrCat(path, ".", kParameters),
                 "is given as a text and as values; keep one of them");
    return;
  }
  std::vector<FormulaParameter> parameters;
  for (const auto& [name, value] : own) {
    encoding.mutable_parameters()->erase(name);
    if (auto parameter =
            ParameterReader(absl::StrCat(path, ".", name), findings).Read(name, value)) {
      parameters.push_back(*std::move(parameter));
    } else if (FormulaParameter unknown = {.name = name};
               models::FormulaParameterMistake(unknown).empty()) {
      // Declares the parameter although it is wrong, so that the formula is not reported as well.
      parameters.push_back(std::move(unknown));
    }
  }
  (*encoding.mutable_parameters())[kParameters].set_string_value(
      models::FormatFormulaParameters(parameters));
}

}  // namespace lengthwise::specification
