#include "tests/golden/agreement.h"

#include "gtest/gtest.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {

void ExpectAgreement(const at::Tensor& actual, const nlohmann::json& expected,
                     at::ScalarType dtype) {
  const at::Tensor values = Float64Values(expected);
  ASSERT_EQ(actual.numel(), values.numel());
  const double tolerance = dtype == at::kDouble ? 1e-9 : 1e-5;
  EXPECT_LE(LargestDifference(actual, values), tolerance * values.abs().max().item<double>())
      << dtype;
}

}  // namespace lengthwise::golden
