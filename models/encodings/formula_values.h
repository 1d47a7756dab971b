// Numbers of a formula at single points, in double precision: for checks and pictures. Training
// computes the same with tensors (formula.cc). No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/encodings/formula_definition.h"

namespace lengthwise::models {

// A function of x, or an operator or function of x and y.
double FormulaOpValue(FormulaOp op, double x, double y);

// Evaluates one expression with the parameters' initial values; of those that start from random
// numbers, with minus their standard deviation. Not thread-safe.
class FormulaEvaluator {
 public:
  // Both outlive this.
  FormulaEvaluator(const FormulaNodes& nodes, const std::vector<FormulaParameter>& parameters);

  // The expression's value for these arguments, in the order of its FormulaPlace. `head` and
  // `layer` choose parameters' values.
  double At(absl::Span<const double> arguments, size_t head, size_t layer);

  // What is not finite in what the last At() computed, a value or a gradient, in float32 where a
  // parameter is learned: "column 5: log(...) is -infinity". Empty for nothing.
  std::string NotFinite() const;

 private:
  // A value, and its derivative when all learned parameters grow alike.
  struct Dual {
    double value = 0;
    double slope = 0;
  };

  Dual Compute(const FormulaNode& node, absl::Span<const double> arguments, size_t head,
               size_t layer) const;
  double ParameterValue(const FormulaNode& node, size_t element, size_t head, size_t layer) const;

  const FormulaNodes& nodes_;
  const std::vector<FormulaParameter>& parameters_;
  std::vector<Dual> values_;
};

// Where a formula is used.
struct FormulaDomain {
  int64_t heads = 1;
  int64_t layers = 1;
  int64_t d_model = 0;
  // Tokens of a sequence. Where the fewest are 0, only the longest sequences are looked at.
  int64_t shortest = 0;
  int64_t longest = 1;
  // Randomized positions are below this; 0 where positions are those of the tokens.
  int64_t max_position = 0;
  // Nodes of expressions that a check computes at most.
  int64_t operations = 0;
};

// Appends a problem for each expression that is not finite, or whose gradient is not, somewhere in
// its domain, named by its arguments. Where domain.operations do not reach for all points, a spread
// of them with both ends is looked at.
void CheckFormulaValues(const FormulaDefinition& definition, const FormulaDomain& domain,
                        absl::string_view path, std::vector<catalogue::Problem>& problems);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_
