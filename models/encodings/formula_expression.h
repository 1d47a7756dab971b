// The language of the encoding `formula`: one expression with only the names and functions listed
// here, without loops. No LibTorch.
//
//   expression = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]     1 if it holds, else 0
//   sum        = product {("+" | "-") product}
//   product    = factor {("*" | "/") factor}
//   factor     = "-" factor | power
//   power      = atom ["^" factor]
//   atom       = NUMBER | "pi" | ARGUMENT | PARAMETER | TABLE "[" expression "]"
//              | FUNCTION "(" expression {"," expression} ")" | "(" expression ")"
//
// Functions: abs, cos, exp, floor, log, log1p, max(a, b), min(a, b), sigmoid, sin, softplus, sqrt,
// tanh, where(condition, a, b). where() is `a` where the condition is not 0; the other branch
// changes neither the value nor a gradient. TABLE[x] is the element floor(x), or the first or last
// one beyond the ends; x must not depend on a parameter that is learned.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_EXPRESSION_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_EXPRESSION_H_

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/encodings/formula_operators.h"

namespace lengthwise::models {

inline constexpr size_t kMaxFormulaBytes = 1000;
inline constexpr size_t kMaxFormulaNodes = 200;
inline constexpr int kMaxFormulaDepth = 50;

struct FormulaNode {
  FormulaOp op = FormulaOp::kNumber;
  double number = 0;  // of kNumber
  size_t index = 0;   // of kArgument, kParameter and kTable: the name's place in its list
  std::vector<size_t> operands{};  // indices of earlier nodes
  size_t column = 1;               // from 1, in bytes
  bool learned = false;            // depends on a learned parameter
};

// A parameter of a formula: a number or a table of numbers, one for the whole model or one for each
// head or layer.
struct FormulaParameter {
  enum class Per { kModel, kHead, kLayer };
  std::string name;
  Per per = Per::kModel;
  // Never trained.
  bool fixed = false;
  // Elements of a table; 0 for a number.
  size_t size = 0;
  // Initial values: one for all, or one for each element of a table; for a number, also one for
  // each head or layer.
  std::vector<double> initial = {0};
  // If above 0, initial values are drawn from N(0, stddev) instead.
  double stddev = 0;
};

// In evaluation order: operands precede their operation, and the last node is the result.
using FormulaNodes = std::vector<FormulaNode>;

// A syntax error and its column, counted from 1.
struct FormulaMistake {
  size_t column = 0;
  std::string description;  // `unknown function "lgo"; did you mean "log"?`
};

// Parses `text`. Names may be `arguments`, `parameters` and functions.
std::variant<FormulaNodes, FormulaMistake> ParseFormula(
    absl::string_view text, absl::Span<const std::string> arguments,
    absl::Span<const FormulaParameter> parameters);

// Names of all functions.
std::vector<std::string> FormulaFunctions();

// The operator or function as formulas write it: "log1p", "/".
absl::string_view FormulaOpName(FormulaOp op);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_EXPRESSION_H_
