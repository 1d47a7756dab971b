// Binary numbers of any length: arithmetic on GMP limbs, and conversion from and to tokens. Uses
// GMP's mpn level, which leaves allocation to the caller.
#ifndef LENGTHWISE_TASKS_CHOMSKY_BINARY_NUMBER_H_
#define LENGTHWISE_TASKS_CHOMSKY_BINARY_NUMBER_H_

#include <gmp.h>

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "random/stream.h"

namespace lengthwise::tasks::chomsky {

// Least significant limb first. Up to 1024 bits without an allocation.
using Limbs = absl::InlinedVector<mp_limb_t, 16>;

// Fills `bits` with a number drawn uniformly from {1, ..., 2^k - 1}, k = bits.size() >= 1.
void DrawPositive(random::Stream& stream, absl::Span<int32_t> bits);

// Converts bits, least significant first. The result has no leading zero limbs; it is empty for 0.
Limbs FromLowFirst(absl::Span<const int32_t> bits);

// Converts bits, most significant first.
Limbs FromHighFirst(absl::Span<const int32_t> bits);

Limbs Sum(const Limbs& a, const Limbs& b);
Limbs Product(const Limbs& a, const Limbs& b);
// floor(sqrt(a))
Limbs SquareRoot(const Limbs& a);

// Number of bits without leading zeros; 0 for 0.
size_t BitLength(const Limbs& a);

// Bit `i`; 0 beyond the highest.
inline int32_t Bit(const Limbs& a, size_t i) {
  const size_t limb = i / GMP_NUMB_BITS;
  return limb < a.size() ? static_cast<int32_t>((a[limb] >> (i % GMP_NUMB_BITS)) & 1) : 0;
}

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_BINARY_NUMBER_H_
