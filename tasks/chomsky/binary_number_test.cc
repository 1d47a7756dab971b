#include "tasks/chomsky/binary_number.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "random/stream.h"

namespace lengthwise::tasks::chomsky {
namespace {

using Bits = std::vector<int32_t>;  // least significant first

Bits Draw(uint32_t row, size_t length) {
  Bits bits(length);
  random::Stream stream(0, random::Purpose::kPreview, length, row);
  DrawPositive(stream, absl::MakeSpan(bits));
  return bits;
}

Bits ToBits(const Limbs& number) {
  Bits bits(BitLength(number));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = Bit(number, i);
  return bits;
}

void Trim(Bits& bits) {
  while (!bits.empty() && bits.back() == 0) bits.pop_back();
}

// Schoolbook addition, one bit at a time.
Bits Added(const Bits& a, const Bits& b) {
  Bits sum(std::max(a.size(), b.size()) + 1);
  int32_t carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    carry += (i < a.size() ? a[i] : 0) + (i < b.size() ? b[i] : 0);
    sum[i] = carry % 2;
    carry /= 2;
  }
  Trim(sum);
  return sum;
}

Bits Multiplied(const Bits& a, const Bits& b) {
  Bits product;
  for (size_t shift = 0; shift < b.size(); ++shift) {
    if (b[shift] == 0) continue;
    Bits shifted(shift, 0);
    shifted.insert(shifted.end(), a.begin(), a.end());
    product = Added(product, shifted);
  }
  return product;
}

// Returns true if a < b. Neither has leading zeros.
bool Less(const Bits& a, const Bits& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

constexpr size_t kLengths[] = {1, 2, 31, 63, 64, 65, 127, 128, 129, 250, 499, 500, 1100};

TEST(BinaryNumberTest, SumsAndProductsMatchSchoolbook) {
  for (const size_t length : kLengths) {
    for (const size_t other : {size_t{1}, size_t{64}, length}) {
      const Bits a = Draw(0, length);
      const Bits b = Draw(1, other);
      EXPECT_EQ(ToBits(Sum(FromLowFirst(a), FromLowFirst(b))), Added(a, b));
      EXPECT_EQ(ToBits(Product(FromLowFirst(a), FromLowFirst(b))), Multiplied(a, b));
    }
  }
}

TEST(BinaryNumberTest, CarriesRunThroughAllLimbs) {
  const Bits ones(500, 1);
  Bits power(501);
  power.back() = 1;
  EXPECT_EQ(ToBits(Sum(FromLowFirst(ones), FromLowFirst(Bits{1}))), power);
}

TEST(BinaryNumberTest, SquareRootIsRoundedDown) {
  for (const size_t length : kLengths) {
    for (uint32_t row = 0; row < 8; ++row) {
      Bits number = Draw(row, length);
      const Bits root = ToBits(SquareRoot(FromLowFirst(number)));
      const Bits next = Added(root, {1});
      Trim(number);
      EXPECT_FALSE(Less(number, Multiplied(root, root))) << length;
      EXPECT_TRUE(Less(number, Multiplied(next, next))) << length;
    }
  }
}

TEST(BinaryNumberTest, SquareRootIsExactAroundSquares) {
  Bits root(250, 1);
  const Limbs square = Product(FromLowFirst(root), FromLowFirst(root));
  EXPECT_EQ(ToBits(SquareRoot(square)), root);
  Limbs below = square;
  below[0] -= 1;  // the square of an odd number is odd
  root[0] = 0;
  EXPECT_EQ(ToBits(SquareRoot(below)), root);
}

TEST(BinaryNumberTest, HighFirstIsLowFirstReversed) {
  Bits bits = Draw(3, 100);
  const Limbs number = FromLowFirst(bits);
  std::reverse(bits.begin(), bits.end());
  EXPECT_EQ(FromHighFirst(bits), number);
}

TEST(BinaryNumberTest, ZeroHasNoBits) {
  const Limbs zero = FromLowFirst(Bits(70, 0));
  EXPECT_EQ(BitLength(zero), 0U);
  EXPECT_EQ(BitLength(Product(zero, FromLowFirst(Bits{1}))), 0U);
  EXPECT_EQ(BitLength(Sum(zero, zero)), 0U);
  EXPECT_EQ(BitLength(SquareRoot(zero)), 0U);
  EXPECT_EQ(Bit(zero, 5), 0);
}

}  // namespace
}  // namespace lengthwise::tasks::chomsky
