// The operators and functions of the encoding `formula`: one table for their names, values, for
// numbers and tensors alike, and derivatives. No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_OPERATORS_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_OPERATORS_H_

#include <algorithm>
#include <array>
#include <cmath>

// Of each: NAME, the word in formulas, the number of operands, the value of the operands x and y,
// and the derivatives by x and by y, which may use `value`: 0 where LibTorch also takes the limit
// 0. The parser takes the first word that matches, so longer operators come first. "where" is not
// here, because it computes only one of its branches.
// clang-format off
#define LENGTHWISE_FORMULA_OPERATORS(OPERATOR) \
  OPERATOR(LessOrEqual, "<=", 2, x <= y, 0, 0) \
  OPERATOR(GreaterOrEqual, ">=", 2, x >= y, 0, 0) \
  OPERATOR(Equal, "==", 2, x == y, 0, 0) \
  OPERATOR(NotEqual, "!=", 2, x != y, 0, 0) \
  OPERATOR(Less, "<", 2, x < y, 0, 0) \
  OPERATOR(Greater, ">", 2, x > y, 0, 0) \
  OPERATOR(Add, "+", 2, x + y, 1, 1) \
  OPERATOR(Subtract, "-", 2, x - y, 1, -1) \
  OPERATOR(Multiply, "*", 2, x * y, y, x) \
  OPERATOR(Divide, "/", 2, x / y, 1 / y, -value / y) \
  OPERATOR(Power, "^", 2, pow(x, y), y == 0 ? 0 : y * pow(x, y - 1), \
           x == 0 && y >= 0 ? 0 : value * log(x)) \
  OPERATOR(Negate, "-", 1, -x, -1, 0) \
  OPERATOR(Abs, "abs", 1, abs(x), x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0, 0) \
  OPERATOR(Cos, "cos", 1, cos(x), -sin(x), 0) \
  OPERATOR(Exp, "exp", 1, exp(x), value, 0) \
  OPERATOR(Floor, "floor", 1, floor(x), 0, 0) \
  OPERATOR(Log, "log", 1, log(x), 1 / x, 0) \
  OPERATOR(Log1p, "log1p", 1, log1p(x), 1 / (1 + x), 0) \
  OPERATOR(Max, "max", 2, maximum(x, y), x > y ? 1 : x < y ? 0 : 0.5, y > x ? 1 : y < x ? 0 : 0.5) \
  OPERATOR(Min, "min", 2, minimum(x, y), x < y ? 1 : x > y ? 0 : 0.5, y < x ? 1 : y > x ? 0 : 0.5) \
  OPERATOR(Sigmoid, "sigmoid", 1, sigmoid(x), value * (1 - value), 0) \
  OPERATOR(Sin, "sin", 1, sin(x), cos(x), 0) \
  OPERATOR(Softplus, "softplus", 1, softplus(x), sigmoid(x), 0) \
  OPERATOR(Sqrt, "sqrt", 1, sqrt(x), 0.5 / value, 0) \
  OPERATOR(Tanh, "tanh", 1, tanh(x), 1 - value * value, 0)
// clang-format on

namespace lengthwise::models {

enum class FormulaOp {
  kNumber,
  kArgument,
  kParameter,
  kTable,
  kWhere,
#define LENGTHWISE_OP(Name, ...) k##Name,
  LENGTHWISE_FORMULA_OPERATORS(LENGTHWISE_OP)
#undef LENGTHWISE_OP
};

namespace formula {

// Functions that <cmath> lacks, by the names that LibTorch gives them.
inline double maximum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
}
inline double minimum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// Value of an operator of the table; it reads `y` only if it has two operands. `Number` is double
// or at::Tensor, of which a comparison is a tensor of bool.
template <typename Number>
Number Value(FormulaOp op, const Number& x, const Number& y) {
  using std::abs, std::cos, std::exp, std::floor, std::log, std::log1p, std::pow, std::sin,
      std::sqrt, std::tanh;
#define LENGTHWISE_VALUE(Name, word, operands, of_operands, ...) \
  if (op == FormulaOp::k##Name) return of_operands;
  LENGTHWISE_FORMULA_OPERATORS(LENGTHWISE_VALUE)
#undef LENGTHWISE_VALUE
  return x;
}

// Derivatives of an operator's `value` by x and by y.
inline std::array<double, 2> Derivatives(FormulaOp op, double x, double y, double value) {
  using std::cos, std::log, std::pow, std::sin;
#define LENGTHWISE_DERIVATIVES(Name, word, operands, of_operands, by_x, by_y) \
  if (op == FormulaOp::k##Name) return {by_x, by_y};
  LENGTHWISE_FORMULA_OPERATORS(LENGTHWISE_DERIVATIVES)
#undef LENGTHWISE_DERIVATIVES
  return {};
}

}  // namespace formula
}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_OPERATORS_H_
