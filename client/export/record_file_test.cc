#include "client/export/record_file.h"

#include <numeric>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(RecordFileTest, ChecksumsAreThoseOfRfc3720) {
  // Appendix B.4, whose bytes are in the order in which they are sent.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  EXPECT_EQ(Crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(std::string(ascending.rbegin(), ascending.rend())), 0x113FDB5Cu);
  // The check value of the catalogue of CRCs.
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
}

TEST(RecordFileTest, ARecordIsItsLengthAndItsBytesEachWithAMaskedChecksum) {
  const std::string record = FramedRecord("123456789");
  ASSERT_EQ(record.size(), 8 + 4 + 9 + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  // 0xE3069283 rotated right by 15 is 0x2507C60D; with 0xA282EAD8 added 0xC78AB0E5.
  EXPECT_EQ(record.substr(21), "\xE5\xB0\x8A\xC7");
}

}  // namespace
}  // namespace lengthwise::client
