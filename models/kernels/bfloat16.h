// bfloat16: the upper half of a float32, with 8 exponent and 7 fraction bits. Has the same bits as
// LibTorch's type, which kernels do not use because they build without LibTorch.
#ifndef LENGTHWISE_MODELS_KERNELS_BFLOAT16_H_
#define LENGTHWISE_MODELS_KERNELS_BFLOAT16_H_

#include <cstdint>
#include <cstring>

#include "models/kernels/simt.h"

namespace lengthwise::kernels {

struct BFloat16 {
  uint16_t bits;
};

LENGTHWISE_EVERYWHERE float ToFloat(float x) { return x; }
LENGTHWISE_EVERYWHERE float ToFloat(BFloat16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

// Rounds to nearest, ties to even.
template <typename T>
LENGTHWISE_EVERYWHERE T FromFloat(float x);
template <>
LENGTHWISE_EVERYWHERE float FromFloat<float>(float x) {
  return x;
}
template <>
LENGTHWISE_EVERYWHERE BFloat16 FromFloat<BFloat16>(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  // NaN is kept apart: rounding up could turn its bits into infinity.
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_BFLOAT16_H_
