// How closely a formula's golden values are reproduced.
#ifndef LENGTHWISE_TESTS_GOLDEN_AGREEMENT_H_
#define LENGTHWISE_TESTS_GOLDEN_AGREEMENT_H_

#include "ATen/core/Tensor.h"
#include "nlohmann/json.hpp"

namespace lengthwise::golden {

// What formulas are computed in.
inline constexpr at::ScalarType kFormulaTypes[] = {at::kDouble, at::kFloat};

// A test fails where a value is off by more than 1e-9 in float64, or 1e-5 in float32, of the
// largest of the expected ones in magnitude, or where there are not as many values.
void ExpectAgreement(const at::Tensor& actual, const nlohmann::json& expected,
                     at::ScalarType dtype);

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_AGREEMENT_H_
