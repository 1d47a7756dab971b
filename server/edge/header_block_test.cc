#include "server/edge/header_block.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(HeaderBlock, WrittenBlocksAreReadBack) {
  HeaderFields fields = {{":path", "/a.B/C"}, {"empty", ""}};
  for (const size_t size : {126, 127, 128, 254, 255, 256, 5000}) {
    fields.emplace_back("x", std::string(size, 'y'));
  }
  HeaderReader reader;
  const auto read = reader.Read(WriteHeaderBlock(fields), 10'000);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, fields);
  EXPECT_EQ(FieldOf(*read, ":path"), "/a.B/C");
  EXPECT_EQ(FieldOf(*read, "absent"), "");
}

// RFC 7541, appendix C.4.1 and C.4.2: the second block refers to a field of the first.
TEST(HeaderBlock, BlocksReferToEarlierOnes) {
  const std::string first = "\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
  const std::string second = "\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";
  HeaderReader reader;
  EXPECT_EQ(FieldOf(*reader.Read(first, 1000), ":authority"), "www.example.com");
  const auto fields = reader.Read(second, 1000);
  ASSERT_TRUE(fields.ok()) << fields.status();
  EXPECT_EQ(FieldOf(*fields, ":authority"), "www.example.com");
  EXPECT_EQ(FieldOf(*fields, "cache-control"), "no-cache");
  EXPECT_EQ(HeaderReader().Read(second, 1000).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HeaderBlock, ExpandingBlockIsRefused) {
  // One field of 3,000 bytes for the table, then a thousand references of one byte.
  const std::string size = {'\x7f', '\xb9', '\x16'};  // 3,000 - 127 = 0x39 + 0x16 * 128
  const std::string bomb =
      absl::StrCat("\x40\x01x", size, std::string(3000, 'y'), std::string(1000, '\xbe'));
  EXPECT_EQ(HeaderReader().Read(bomb, 16 << 10).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lengthwise::server
