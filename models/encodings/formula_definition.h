// What a specification says of the encoding `formula`: its expressions and their parameters. No
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

// A number of a formula, or a table of numbers, for each head or layer or for the whole model.
struct FormulaParameter {
  enum class Per { kModel, kHead, kLayer };
  std::string name;
  Per per = Per::kModel;
  // Never trained.
  bool fixed = false;
  // Elements of a table; 0 for a number.
  size_t size = 0;
  // What training starts from: one value for all; or one for each element of a table, and of a
  // number one for each head or layer.
  std::vector<double> initial = {0};
  // Above 0: training starts from N(0, stddev) instead.
  double stddev = 0;
};

// What is wrong with a parameter's name or values; empty for nothing.
std::string FormulaParameterMistake(const FormulaParameter& parameter);

// Writes parameters as the resolved specification has them: "a per head = 1; t[3] fixed = 0, 1, 2;
// u[32] per head ~ 0.125" (after "~" stands the standard deviation).
std::string FormatFormulaParameters(const std::vector<FormulaParameter>& parameters);

// Reads what FormatFormulaParameters writes. Appends mistakes to `problems` with field `path`.
std::vector<FormulaParameter> ParseFormulaParameters(absl::string_view text, absl::string_view path,
                                                     std::vector<catalogue::Problem>& problems);

// Where a formula may stand, and its arguments by their place in a FormulaNode.
struct FormulaPlace {
  std::string name;  // the entry's parameter
  std::vector<std::string> arguments;
};
// q, k: positions of query and key; h of H heads; n tokens.
const FormulaPlace& LogitsPlace();
// p: position; c of d channels.
const FormulaPlace& EmbeddingPlace();
// p: position; i of the d / 2 pairs of a head's d features.
const FormulaPlace& AnglePlace();

struct FormulaDefinition {
  std::vector<FormulaParameter> parameters;
  std::optional<FormulaNodes> logits, embedding, angle;
};

// Reads the parameters of the entry `formula`. Appends mistakes to `problems`, with fields under
// `path`: of syntax, names, and parameters that no expression uses.
FormulaDefinition ReadFormula(const catalogue::Parameters& parameters, absl::string_view path,
                              std::vector<catalogue::Problem>& problems);

// Whether an expression has the argument of this place.
bool UsesArgument(const FormulaNodes& nodes, size_t argument);
// Whether it has a parameter of this kind.
bool UsesParameter(const FormulaNodes& nodes, const std::vector<FormulaParameter>& parameters,
                   FormulaParameter::Per per);

// The language on one page, as `lengthwise encodings formula` prints it.
std::string FormulaPage();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_DEFINITION_H_
