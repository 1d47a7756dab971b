// Evaluates formulas at single points, in double precision, for checks and drawings. Training
// computes the same values with tensors (formula.cc). No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {

// Evaluates one expression with the parameters' initial values; randomly initialised ones take
// minus their standard deviation. Not thread-safe.
class FormulaEvaluator {
 public:
  // Both arguments must outlive this object.
  FormulaEvaluator(const FormulaNodes& nodes, const std::vector<FormulaParameter>& parameters);

  // Value for these arguments, in the order of the expression's FormulaPlace. `head` and `layer`
  // select parameter values.
  double At(absl::Span<const double> arguments, size_t head, size_t layer);

  // Describes the first value or gradient of the last At() that is not finite, such as "column 5:
  // log(0) is minus infinite"; empty if all are finite.
  std::string NotFinite() const;

 private:
  // A value, and its derivative along the direction in which all learned parameters grow alike.
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

// Appends a problem for each expression whose value or gradient is not finite somewhere in its
// domain; it names the arguments. The domain is the positions of `policy` and the context's heads,
// blocks and lengths: only the longest if shortest_sequence is 0 and texts are not open-ended. If
// context.operations, a budget of evaluated nodes, do not suffice for all points, checks a spread
// of them that includes both ends.
void CheckFormulaValues(const FormulaDefinition& definition, const EncodingContext& context,
                        const PositionPolicy& policy, absl::string_view path,
                        std::vector<catalogue::Problem>& problems);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_
