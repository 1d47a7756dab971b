#include "platform/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

// Values of FIPS 180-4's examples.
TEST(Sha256Test, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesGiveTheHashOfTheWhole) {
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) hash.Update(std::string(1000, 'a'));
  EXPECT_EQ(hash.Finish(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Test case 2 of RFC 4231.
TEST(Sha256Test, HmacAgreesWithTheStandardsExample) {
  EXPECT_EQ(HmacSha256Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Sha256Test, KnowsWhatAHashLooksLike) {
  EXPECT_TRUE(IsSha256Hex(Sha256Hex("abc")));
  EXPECT_FALSE(IsSha256Hex(""));
  EXPECT_FALSE(IsSha256Hex(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256Hex(std::string(63, 'a') + "/"));
  EXPECT_FALSE(IsSha256Hex(std::string(65, 'a')));
}

TEST(Sha256Test, HexadecimalDigitsAreLowerCaseAndCounted) {
  EXPECT_TRUE(IsHex("0123456789abcdef", 16));
  EXPECT_TRUE(IsHex("", 0));
  EXPECT_FALSE(IsHex("0123", 5));
  EXPECT_FALSE(IsHex("A0", 2));
  EXPECT_FALSE(IsHex("g0", 2));
}

}  // namespace
}  // namespace lengthwise::platform
