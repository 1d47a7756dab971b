#include "tests/golden/golden_values.h"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "ATen/ops/empty.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

template <typename Number>
void AppendNumbers(const json& array, std::vector<double>& numbers) {
  if (!array.is_array()) {
    numbers.push_back(static_cast<double>(array.get<Number>()));
    return;
  }
  for (const json& element : array) AppendNumbers<Number>(element, numbers);
}

template <typename Number>
at::Tensor Values(const json& array) {
  std::vector<double> numbers;
  AppendNumbers<Number>(array, numbers);
  at::Tensor values = at::empty({static_cast<int64_t>(numbers.size())}, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), values.mutable_data_ptr<double>());
  return values;
}

}  // namespace

json ReadGolden(const std::string& name, const std::string& folder) {
  std::ifstream file(Folder(folder) + "/" + name);
  return file ? json::parse(file) : json();
}

at::Tensor Float32Values(const json& array) { return Values<float>(array); }
at::Tensor Float64Values(const json& array) { return Values<double>(array); }

double LargestDifference(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_EQ(actual.numel(), expected.numel());
  return actual.detach()
      .to(at::kDouble)
      .flatten()
      .sub(expected.flatten())
      .abs()
      .max()
      .item<double>();
}

double LargestDifference(const at::Tensor& actual, const json& expected) {
  return LargestDifference(actual, Float64Values(expected));
}

}  // namespace lengthwise::golden
