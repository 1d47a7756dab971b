#include "tasks/chomsky/binary_number.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

void DropLeadingZeros(Limbs& a) {
  while (!a.empty() && a.back() == 0) a.pop_back();
}

Limbs Zeros(size_t bits) { return Limbs((bits + GMP_NUMB_BITS - 1) / GMP_NUMB_BITS); }

void SetBit(Limbs& a, size_t i, int32_t bit) {
  a[i / GMP_NUMB_BITS] |= static_cast<mp_limb_t>(bit) << (i % GMP_NUMB_BITS);
}

mp_size_t Size(const Limbs& a) { return static_cast<mp_size_t>(a.size()); }

}  // namespace

void DrawPositive(random::Stream& stream, absl::Span<int32_t> bits) {
  do {
    DrawBits(stream, bits);
  } while (!absl::c_linear_search(bits, 1));
}

Limbs FromLowFirst(absl::Span<const int32_t> bits) {
  Limbs number = Zeros(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) SetBit(number, i, bits[i]);
  DropLeadingZeros(number);
  return number;
}

Limbs FromHighFirst(absl::Span<const int32_t> bits) {
  Limbs number = Zeros(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) SetBit(number, bits.size() - 1 - i, bits[i]);
  DropLeadingZeros(number);
  return number;
}

Limbs Sum(const Limbs& a, const Limbs& b) {
  if (a.size() < b.size()) return Sum(b, a);
  if (b.empty()) return a;
  Limbs sum(a.size() + 1);
  sum.back() = mpn_add(sum.data(), a.data(), Size(a), b.data(), Size(b));
  DropLeadingZeros(sum);
  return sum;
}

Limbs Product(const Limbs& a, const Limbs& b) {
  if (a.size() < b.size()) return Product(b, a);
  if (b.empty()) return {};
  Limbs product(a.size() + b.size());
  mpn_mul(product.data(), a.data(), Size(a), b.data(), Size(b));
  DropLeadingZeros(product);
  return product;
}

Limbs SquareRoot(const Limbs& a) {
  if (a.empty()) return {};
  Limbs root((a.size() + 1) / 2);
  Limbs remainder(a.size());
  mpn_sqrtrem(root.data(), remainder.data(), a.data(), Size(a));
  DropLeadingZeros(root);
  return root;
}

size_t BitLength(const Limbs& a) { return a.empty() ? 0 : mpn_sizeinbase(a.data(), Size(a), 2); }

}  // namespace lengthwise::tasks::chomsky
