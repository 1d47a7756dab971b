#include "models/encodings/formula_definition.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lengthwise::models {
namespace {

constexpr size_t kMaxName = 32;

// In the order of FormulaParameter::Per.
constexpr absl::string_view kPerTexts[] = {"", " per head", " per layer"};

// Parses one declaration: NAME ["[" SIZE "]"] ["fixed"] ["per" KIND] ("=" NUMBERS | "~" NUMBER).
std::optional<FormulaParameter> ParseOne(absl::string_view text) {
  const size_t sign = text.find_first_of("=~");
  if (sign == absl::string_view::npos) return std::nullopt;
  FormulaParameter parameter;
  parameter.initial.clear();
  for (const absl::string_view number : absl::StrSplit(text.substr(sign + 1), ',')) {
    double value = 0;
    if (parameter.initial.size() > kMaxFormulaValues ||
        !absl::SimpleAtod(absl::StripAsciiWhitespace(number), &value)) {
      return std::nullopt;
    }
    parameter.initial.push_back(value);
  }
  if (text[sign] == '~') {
    if (parameter.initial.size() != 1) return std::nullopt;
    parameter.stddev = std::exchange(parameter.initial[0], 0);
    if (parameter.stddev == 0) return std::nullopt;
  }
  std::vector<absl::string_view> words =
      absl::StrSplit(text.substr(0, sign), absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  if (words.empty()) return std::nullopt;
  absl::string_view name = words[0];
  if (absl::ConsumeSuffix(&name, "]")) {
    const size_t bracket = name.find('[');
    uint32_t size = 0;
    if (bracket == absl::string_view::npos || !absl::SimpleAtoi(name.substr(bracket + 1), &size) ||
        size == 0) {
      return std::nullopt;
    }
    parameter.size = size;
    name = name.substr(0, bracket);
  }
  parameter.name = std::string(name);
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "fixed") {
      parameter.fixed = true;
    } else if (words[i] == "per" && i + 1 < words.size()) {
      ++i;
      if (words[i] == "head") {
        parameter.per = FormulaParameter::Per::kHead;
      } else if (words[i] == "layer") {
        parameter.per = FormulaParameter::Per::kLayer;
      } else if (words[i] != "model") {
        return std::nullopt;
      }
    } else {
      return std::nullopt;
    }
  }
  return parameter;
}

// Parses the expression of one place. Adds the parameters that it uses to `used`.
std::optional<FormulaNodes> ReadPlace(const FormulaPlace& place,
                                      const std::vector<FormulaParameter>& declared,
                                      const std::string& text, absl::string_view path,
                                      std::set<size_t>& used,
                                      std::vector<catalogue::Problem>& problems) {
  if (text.empty()) return std::nullopt;
  const auto fail = [&](size_t column, absl::string_view description) {
    AddProblem(problems, absl::StrCat(path, ".", place.name), "column ", column, ": ", description);
    return std::nullopt;
  };
  auto parsed = ParseFormula(text, place.arguments, declared);
  if (const auto* mistake = std::get_if<FormulaMistake>(&parsed)) {
    // A text with a mistake may use any parameter: report none as unused.
    for (size_t i = 0; i < declared.size(); ++i) used.insert(i);
    return fail(mistake->column, mistake->description);
  }
  for (const FormulaNode& node : std::get<FormulaNodes>(parsed)) {
    if (node.op != FormulaOp::kParameter && node.op != FormulaOp::kTable) continue;
    used.insert(node.index);
    if (declared[node.index].per == FormulaParameter::Per::kHead &&
        !absl::c_linear_search(place.arguments, "h")) {
      return fail(node.column, absl::StrCat("\"", declared[node.index].name,
                                            "\" is per head, but only logits and scale have heads; "
                                            "use per: model or per: layer"));
    }
  }
  return std::get<FormulaNodes>(std::move(parsed));
}

}  // namespace

std::string FormulaParameterMistake(const FormulaParameter& parameter) {
  const std::string& name = parameter.name;
  const bool starts = !name.empty() && (absl::ascii_isalpha(name[0]) || name[0] == '_');
  if (!starts || name.size() > kMaxName ||
      !absl::c_all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '_'; })) {
    return absl::StrCat("got the name \"", name.substr(0, kMaxName), "\", expected at most ",
                        kMaxName, " letters, digits and \"_\", first a letter");
  }
  std::vector<std::string> taken = FormulaFunctions();
  taken.emplace_back("pi");
  for (const FormulaPlace& place : FormulaPlaces()) {
    taken.insert(taken.end(), place.arguments.begin(), place.arguments.end());
  }
  if (absl::c_linear_search(taken, name)) {
    return absl::StrCat("\"", name, "\" has a meaning in formulas; use another name");
  }
  if (parameter.size > kMaxFormulaValues || parameter.initial.size() > kMaxFormulaValues) {
    return absl::StrCat("\"", name, "\" has more than ", kMaxFormulaValues, " values");
  }
  if (parameter.initial.empty() || (parameter.size > 0 && parameter.initial.size() != 1 &&
                                    parameter.initial.size() != parameter.size)) {
    return absl::StrCat("\"", name, "\" has ", parameter.initial.size(),
                        " initial values, expected ",
                        parameter.size > 0 ? absl::StrCat("1 or ", parameter.size) : "1 or more");
  }
  if (parameter.size == 0 && parameter.initial.size() > 1 &&
      parameter.per == FormulaParameter::Per::kModel) {
    return absl::StrCat("\"", name, "\" is one number; set per: head or per: layer, or its size");
  }
  for (const double value : parameter.initial) {
    if (!(std::abs(value) <= 1e30)) {
      return absl::StrCat("\"", name, "\" starts from ", catalogue::FormatValue(value),
                          ", expected numbers from -1e30 to 1e30");
    }
  }
  if (!(parameter.stddev >= 0 && parameter.stddev <= 1e6)) {
    return absl::StrCat("\"", name, "\" has the standard deviation ",
                        catalogue::FormatValue(parameter.stddev), ", expected 0 to 1e6");
  }
  if (parameter.fixed && parameter.stddev > 0) {
    return absl::StrCat("\"", name, "\" is fixed: set `initial` and no `stddev`");
  }
  return "";
}

std::string FormatFormulaParameters(const std::vector<FormulaParameter>& parameters) {
  return absl::StrJoin(parameters, "; ", [](std::string* out, const FormulaParameter& parameter) {
    absl::StrAppend(out, parameter.name);
    if (parameter.size > 0) absl::StrAppend(out, "[", parameter.size, "]");
    absl::StrAppend(out, parameter.fixed ? " fixed" : "",
                    kPerTexts[static_cast<size_t>(parameter.per)]);
    if (parameter.stddev > 0) {
      absl::StrAppend(out, " ~ ", catalogue::FormatValue(parameter.stddev));
      return;
    }
    absl::StrAppend(out, " = ",
                    absl::StrJoin(parameter.initial, ", ", [](std::string* to, double value) {
                      absl::StrAppend(to, catalogue::FormatValue(value));
                    }));
  });
}

std::vector<FormulaParameter> ParseFormulaParameters(absl::string_view text, absl::string_view path,
                                                     std::vector<catalogue::Problem>& problems) {
  std::vector<FormulaParameter> parameters;
  if (absl::StripAsciiWhitespace(text).empty()) return parameters;
  const auto fail = [&](absl::string_view description) { AddProblem(problems, path, description); };
  std::set<std::string> names;
  for (const absl::string_view declaration : absl::StrSplit(text, ';')) {
    std::optional<FormulaParameter> parameter = ParseOne(declaration);
    if (!parameter) {
      fail(absl::StrCat("got \"", absl::StripAsciiWhitespace(declaration).substr(0, 60),
                        "\", expected a parameter such as \"a per head = 1\""));
      return parameters;
    }
    if (const std::string mistake = FormulaParameterMistake(*parameter); !mistake.empty()) {
      fail(mistake);
    } else if (!names.insert(parameter->name).second) {
      fail(absl::StrCat("\"", parameter->name, "\" is given twice"));
    } else if (parameters.size() == kMaxFormulaParameters) {
      fail(absl::StrCat("more than ", kMaxFormulaParameters, " parameters"));
      return parameters;
    } else {
      parameters.push_back(*std::move(parameter));
    }
  }
  return parameters;
}

const std::vector<FormulaPlace>& FormulaPlaces() {
  using Definition = FormulaDefinition;
  static const auto& places =
      *new std::vector<FormulaPlace>{{"logits", {"q", "k", "h", "H", "n"}, &Definition::logits},
                                     {"embedding", {"p", "c", "d"}, &Definition::embedding},
                                     {"angle", {"p", "i", "d"}, &Definition::angle},
                                     {"scale", {"q", "h", "H", "n"}, &Definition::scale},
                                     {"magnitude", {"p", "i", "d"}, &Definition::magnitude}};
  return places;
}

FormulaDefinition ReadFormula(const catalogue::Parameters& parameters, absl::string_view path,
                              std::vector<catalogue::Problem>& problems) {
  FormulaDefinition definition;
  const size_t before = problems.size();
  const std::string field = absl::StrCat(path, ".parameters");
  definition.parameters = ParseFormulaParameters(parameters.String("parameters"), field, problems);
  // An unreadable declaration would make every use of its name a second mistake.
  if (problems.size() != before) return definition;
  std::set<size_t> used;
  bool has_formula = false;
  for (const FormulaPlace& place : FormulaPlaces()) {
    const auto text = parameters.values().find(place.name);
    definition.*place.nodes =
        ReadPlace(place, definition.parameters,
                  text == parameters.values().end() ? "" : std::get<std::string>(text->second),
                  path, used, problems);
    has_formula |= (definition.*place.nodes).has_value();
  }
  if (problems.size() != before) return definition;
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    if (used.count(i) > 0) continue;
    AddProblem(problems, field, "\"", definition.parameters[i].name,
               "\" is used in no formula; leave it out");
  }
  if (!has_formula) {
    AddProblem(problems, path,
               "has no formula; set logits, embedding or angle (`lengthwise encodings "
               "formula` explains them)");
  }
  return definition;
}

bool UsesArgument(const FormulaNodes& nodes, size_t argument) {
  return absl::c_any_of(nodes, [&](const FormulaNode& node) {
    return node.op == FormulaOp::kArgument && node.index == argument;
  });
}

bool UsesParameter(const FormulaNodes& nodes, const std::vector<FormulaParameter>& parameters,
                   FormulaParameter::Per per) {
  return absl::c_any_of(nodes, [&](const FormulaNode& node) {
    return (node.op == FormulaOp::kParameter || node.op == FormulaOp::kTable) &&
           parameters[node.index].per == per;
  });
}

std::string FormulaPage() {
  return R"page(An example:

  encodings:
    - name: formula
      label: my_bias                  # name in tables and figures
      logits: "-softplus(a) * log1p(softplus(b) * abs(q - k))"
      parameters:
        a: {per: head, initial: 1.0}
        b: {per: head, initial: 0.1}

Where a formula may stand (at least one place), and its arguments:
  logits      q, k: positions of query and key; h of H heads; n tokens (input and output)
  embedding   p: position; c of d channels, d = d_model
  angle       p: position; i of the d / 2 pairs of a head's d features
  scale       q: position; h of H heads; n tokens that the query sees. Multiplies the logits
  magnitude   as angle. Multiplies pairs of queries, divides those of keys; never 0
Positions, heads, channels and pairs count from 0. q, k and p are the drawn positions, if drawn.

Elements of a formula:
  numbers     10, 0.5, 1e-3, pi
  operators   a ^ b, then -a, then a * b and a / b, then a + b and a - b, then comparisons
  comparisons <  <=  >  >=  ==  !=     1 where they hold, else 0
  functions   abs cos exp floor log log1p sigmoid sin softplus sqrt tanh, max(a, b), min(a, b)
  where(condition, a, b)               a where the condition is not 0, else b
  t[x]        element floor(x) of the table t, counted from 0; beyond its ends, the first or last
A formula has at most 1,000 characters and 200 numbers, names and operators.

Parameters (at most 16), learned unless they are fixed:
  a: 0.5                                   one number for the model, which starts from 0.5
  a: {per: head, initial: 0.5}             per: head (in logits, scale), layer or model
  a: {per: head, initial: [1, 2, 4, 8]}    one initial value for each head or layer
  t: [0, 0.5, 1]                           a table of three numbers
  t: {size: 32, per: head, stddev: 0.1}    a table for each head, from N(0, stddev)
  s: {initial: 8, fixed: true}             never trained

`lengthwise validate` reports mistakes by column, and formulas that are not finite at some length of
the specification. `lengthwise encodings --draw FILE.yaml` draws them.
)page";
}

}  // namespace lengthwise::models
