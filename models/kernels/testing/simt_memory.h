// Device memory in tests with simt_emulator.h: vectors of exactly the needed size, so that
// AddressSanitizer sees accesses outside them.
#ifndef LENGTHWISE_MODELS_KERNELS_TESTING_SIMT_MEMORY_H_
#define LENGTHWISE_MODELS_KERNELS_TESTING_SIMT_MEMORY_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "models/kernels/bfloat16.h"

namespace lengthwise::kernels {

template <typename T>
std::vector<T> Converted(const std::vector<float>& numbers) {
  std::vector<T> converted;
  converted.reserve(numbers.size());
  for (const float number : numbers) converted.push_back(FromFloat<T>(number));
  return converted;
}

template <typename T>
std::vector<float> ToFloats(const std::vector<T>& numbers) {
  std::vector<float> converted;
  converted.reserve(numbers.size());
  for (const T number : numbers) converted.push_back(ToFloat(number));
  return converted;
}

// Memory not written yet, filled with NaN.
template <typename T = float>
std::vector<T> Unwritten(int64_t size) {
  return std::vector<T>(static_cast<size_t>(size), FromFloat<T>(NAN));
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TESTING_SIMT_MEMORY_H_
