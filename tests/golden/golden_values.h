// Reads golden files as tensors, and resolves catalogue entries for tests.
#ifndef LENGTHWISE_TESTS_GOLDEN_GOLDEN_VALUES_H_
#define LENGTHWISE_TESTS_GOLDEN_GOLDEN_VALUES_H_

#include <map>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lengthwise::golden {

// The file `name` of a folder. Null if it is absent; skip the test then.
nlohmann::json ReadGolden(const std::string& name,
                          const std::string& folder = "encodings_and_networks");

// The numbers of a (nested) array, flattened, in double precision. Float32Values is for numbers
// that the reference computed in float32: they are printed with just enough digits, and are read as
// float32.
at::Tensor Float32Values(const nlohmann::json& array);
at::Tensor Float64Values(const nlohmann::json& array);

// The largest absolute difference, in double precision. Fails the test if the number of values
// differs.
double LargestDifference(const at::Tensor& actual, const at::Tensor& expected);
double LargestDifference(const at::Tensor& actual, const nlohmann::json& expected);

using Given = std::map<std::string, catalogue::ParameterValue>;

// Resolves the parameters of the entry `name`. Fails the test if they are invalid.
template <typename Entry>
catalogue::Parameters Resolve(absl::Span<const Entry* const> entries, const std::string& name,
                              const Given& given) {
  catalogue::Parameters parameters;
  for (const auto& [key, value] : given) parameters.Set(key, value);
  for (const Entry* entry : entries) {
    if (entry->name != name) continue;
    std::vector<catalogue::Problem> problems;
    parameters = catalogue::Resolve(*entry, parameters, "", problems);
    EXPECT_TRUE(problems.empty()) << problems[0].field << ": " << problems[0].description;
    return parameters;
  }
  ADD_FAILURE() << "no entry " << name;
  return {};
}

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_GOLDEN_VALUES_H_
