#include "rpc/token_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const TokenText kToken = {std::string(12, 'a'), std::string(64, '7')};

TEST(TokenText, RoundTrips) {
  const std::string text = FormatTokenText(kToken);
  EXPECT_EQ(text, "lw_" + std::string(12, 'a') + "_" + std::string(64, '7'));
  EXPECT_EQ(ParseTokenText(text).value(), kToken);
}

TEST(TokenText, MalformedTextIsRefusedAndNotRepeated) {
  const std::string text = FormatTokenText(kToken);
  for (const std::string& wrong :
       {std::string(), std::string("lw_"), text + "7", text.substr(0, text.size() - 1), " " + text,
        text + "\n", "LW_" + text.substr(3), text.substr(3),
        "lw_" + std::string(12, 'A') + "_" + std::string(64, '7'),
        "lw_" + std::string(12, 'a') + "_" + std::string(63, '7') + "g",
        "lw_" + std::string(12, 'a') + "-" + std::string(64, '7'),
        "lw_" + std::string(12, 'a') + "_" + std::string(63, '7') + std::string(1, '\0'),
        std::string(1 << 20, 'a')}) {
    const absl::Status status = ParseTokenText(wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.size();
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("777")));
  }
}

}  // namespace
}  // namespace lengthwise::rpc
