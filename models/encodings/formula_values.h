// Evaluates formulas at single points, in double precision, for checks and drawings. Training
// computes the same values with tensors (formula.cc). No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
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

// Dimensions of the network and lengths for which a formula is checked.
struct FormulaDomain {
  int64_t heads = 1;
  int64_t layers = 1;
  int64_t d_model = 0;
  // Tokens per sequence. If `shortest` is 0, only the longest sequences are checked.
  int64_t shortest = 0;
  int64_t longest = 1;
  // Bounds of drawn positions; absent if positions are token indices.
  std::optional<PositionPolicy::Bounds> drawn = std::nullopt;
  // Budget of a check: nodes evaluated at most.
  int64_t operations = 0;
};

// Appends a problem for each expression whose value or gradient is not finite somewhere in its
// domain; it names the arguments. If domain.operations do not suffice for all points, checks a
// spread of them that includes both ends.
void CheckFormulaValues(const FormulaDefinition& definition, const FormulaDomain& domain,
                        absl::string_view path, std::vector<catalogue::Problem>& problems);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_VALUES_H_
