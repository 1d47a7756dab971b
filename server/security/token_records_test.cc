#include "server/security/token_records.h"

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const TokenRecord kRecord = {std::string(12, 'a'), "ada@example.org", v1::SUBMITTER,
                             1'700'000'000,        1'800'000'000,     std::string(32, 'b'),
                             std::string(64, 'c')};

TEST(TokenRecords, RoundTrip) {
  TokenRecord other = kRecord;
  other.token_id = std::string(12, '0');
  other.principal = "w.1-x_y";
  other.role = v1::WORKER;
  other.maker = "root";
  const std::vector<TokenRecord> records = {kRecord, other};
  EXPECT_EQ(ParseTokenRecords(FormatTokenRecords(records)).value(), records);
  EXPECT_THAT(ParseTokenRecords(FormatTokenRecords({})).value(), IsEmpty());
  EXPECT_EQ(FormatTokenRecords({kRecord}),
            "lengthwise-tokens 1\n"
            "aaaaaaaaaaaa ada@example.org submitter 1700000000 1800000000 " +
                std::string(32, 'b') + " " + std::string(64, 'c') + "\n");
}

TEST(TokenRecords, DamageIsReportedByLineWithoutTheHash) {
  const std::string right = FormatTokenRecords({kRecord});
  const auto damaged = [&](absl::string_view from, absl::string_view to) {
    const absl::Status status =
        ParseTokenRecords(absl::StrReplaceAll(right, {{from, to}})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << from;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("ccc")));
    return std::string(status.message());
  };
  EXPECT_THAT(damaged("lengthwise-tokens 1", "lengthwise-tokens 2"), HasSubstr("line 1"));
  EXPECT_THAT(damaged("submitter", "root"), HasSubstr("line 2: there is no such role"));
  EXPECT_THAT(damaged("ada@example.org", "Ada"), HasSubstr("principal"));
  EXPECT_THAT(damaged("1700000000", "soon"), HasSubstr("time"));
  EXPECT_THAT(damaged("1800000000", "99999999999999999999"), HasSubstr("time"));
  EXPECT_THAT(damaged(std::string(64, 'c'), std::string(63, 'c')), HasSubstr("hash"));
  EXPECT_THAT(damaged(std::string(32, 'b'), ""), HasSubstr("salt"));
  EXPECT_THAT(damaged(" submitter", ""), HasSubstr("seven or eight fields"));
  EXPECT_THAT(damaged(std::string(64, 'c'), std::string(64, 'c') + " Root"), HasSubstr("maker"));
}

// The result of a lost write or a full disk must not look like a complete, shorter list.
TEST(TokenRecords, TruncatedFileIsDamaged) {
  const std::string right = FormatTokenRecords({kRecord});
  const size_t header = right.find('\n') + 1;
  for (size_t size = 0; size < right.size(); ++size) {
    if (size == header) continue;  // a complete file without tokens
    EXPECT_FALSE(ParseTokenRecords(right.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseTokenRecords(right + right.substr(header)).ok()) << "the same token twice";
}

TEST(TokenRecords, PrincipalsAreShortAndPlain) {
  for (const char* right : {"a", "0", "ada", "ada.lovelace@example.org", "gpu-7_x"}) {
    EXPECT_TRUE(IsPrincipal(right)) << right;
  }
  for (const std::string& wrong :
       {std::string(), std::string("Ada"), std::string("-a"), std::string("a b"),
        std::string("a\n"), std::string("a/b"), std::string("\xc3\xa4"), std::string(61, 'a')}) {
    EXPECT_FALSE(IsPrincipal(wrong)) << wrong;
  }
  EXPECT_TRUE(IsPrincipal(std::string(60, 'a')));
}

}  // namespace
}  // namespace lengthwise::server
