// Compares computed values with a formula's golden values.
#ifndef LENGTHWISE_TESTS_GOLDEN_AGREEMENT_H_
#define LENGTHWISE_TESTS_GOLDEN_AGREEMENT_H_

#include "ATen/core/Tensor.h"
#include "nlohmann/json.hpp"

namespace lengthwise::golden {

// The types in which formulas are evaluated.
inline constexpr at::ScalarType kFormulaTypes[] = {at::kDouble, at::kFloat};

// Fails the test if a value differs by more than 1e-9 (float64) or 1e-5 (float32) of the largest
// expected magnitude, or if the number of values differs.
void ExpectAgreement(const at::Tensor& actual, const nlohmann::json& expected,
                     at::ScalarType dtype);

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_AGREEMENT_H_
