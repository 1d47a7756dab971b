// Definition of the encoding `formula` in a specification: its expressions and their parameters. No
// LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_DEFINITION_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_DEFINITION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/encodings/formula_expression.h"

namespace lengthwise::models {

inline constexpr size_t kMaxFormulaParameters = 16;
inline constexpr size_t kMaxFormulaValues = 4096;

// Describes what is wrong with a parameter's name or values; empty if nothing is.
std::string FormulaParameterMistake(const FormulaParameter& parameter);

// Formats parameters as in the resolved specification: "a per head = 1; t[3] fixed = 0, 1, 2; u[32]
// per head ~ 0.125" ("~" precedes a standard deviation).
std::string FormatFormulaParameters(const std::vector<FormulaParameter>& parameters);

// Parses the output of FormatFormulaParameters. Appends mistakes to `problems` with field `path`.
std::vector<FormulaParameter> ParseFormulaParameters(absl::string_view text, absl::string_view path,
                                                     std::vector<catalogue::Problem>& problems);

struct FormulaDefinition {
  std::vector<FormulaParameter> parameters;
  std::optional<FormulaNodes> logits, embedding, angle, scale, magnitude;
};

// A place where a formula may stand, and its arguments in the order of FormulaNode::index.
struct FormulaPlace {
  std::string name;  // the entry's parameter of this name
  std::vector<std::string> arguments;
  std::optional<FormulaNodes> FormulaDefinition::*nodes;
};

// All places, in the order of FormulaDefinition. FormulaPage explains them.
const std::vector<FormulaPlace>& FormulaPlaces();

// Reads the parameters of the entry `formula`. Appends mistakes of syntax and names, and parameters
// that no expression uses, to `problems`, with fields under `path`.
FormulaDefinition ReadFormula(const catalogue::Parameters& parameters, absl::string_view path,
                              std::vector<catalogue::Problem>& problems);

// True if an expression uses the argument at this index of its place.
bool UsesArgument(const FormulaNodes& nodes, size_t argument);
// True if an expression uses a parameter of this kind.
bool UsesParameter(const FormulaNodes& nodes, const std::vector<FormulaParameter>& parameters,
                   FormulaParameter::Per per);

// One-page manual of the language, as printed by `lengthwise encodings formula`.
std::string FormulaPage();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_DEFINITION_H_
