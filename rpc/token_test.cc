#include "rpc/token.h"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::rpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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

constexpr char kWebToken[] = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzYW0ifQ.c2ln-bmF0_dXJl";

TEST(WebToken, HasThreePartsOfBase64Url) {
  const std::string text = kWebToken;
  EXPECT_TRUE(IsWebToken(text));
  EXPECT_FALSE(IsWebToken(FormatTokenText(kToken)));
  for (const std::string& wrong :
       {std::string(), std::string("ey"), std::string("ey.."), std::string("eyJ.a."), text + "=",
        text + ".a", text + "\n", " " + text, text.substr(1), "eyJ." + text.substr(4) + "\xc3",
        text + std::string(kMaxTokenBytes, 'a')}) {
    EXPECT_FALSE(IsWebToken(wrong)) << wrong;
  }
}

std::string Token(char digit) {
  return FormatTokenText({std::string(12, digit), std::string(64, digit)});
}

std::string Path() {
  const std::string path = testing::TempDir() + "/" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".token";
  std::remove(path.c_str());
  return path;
}

TEST(TokenFile, WrittenFileIsReadableByOwnerOnly) {
  const std::string path = Path();
  ASSERT_TRUE(WriteTokenFile(path, Token('1')).ok());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(ReadTokenFile(path).value(), Token('1'));
}

TEST(TokenFile, MayHoldAWebToken) {
  const std::string path = Path();
  // Larger than a token of the server.
  const std::string text = kWebToken + std::string(6000, 'a');
  ASSERT_TRUE(WriteTokenFile(path, text).ok());
  EXPECT_EQ(ReadTokenFile(path).value(), text);
}

TEST(TokenFile, DoesNotOverwriteExistingFile) {
  const std::string path = Path();
  ASSERT_TRUE(WriteTokenFile(path, Token('1')).ok());
  EXPECT_EQ(WriteTokenFile(path, Token('2')).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadTokenFile(path).value(), Token('1'));
}

TEST(TokenFile, UnwritablePathIsNamedWithRemedy) {
  EXPECT_EQ(WriteTokenFile("/nowhere/ada.token", Token('1')),
            absl::NotFoundError("cannot create /nowhere/ada.token: No such file or directory; make "
                                "its directory, or name another file"));
}

TEST(TokenFile, ReadableFileIsRefusedWithRemedy) {
  const std::string path = Path();
  ASSERT_TRUE(WriteTokenFile(path, Token('1')).ok());
  for (const mode_t mode : {0640u, 0604u, 0620u}) {
    chmod(path.c_str(), mode);
    const absl::Status status = ReadTokenFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600 " + path));
  }
}

TEST(TokenFile, InvalidTokenIsRefusedWithoutItsText) {
  const std::string path = Path();
  std::ofstream(path) << "my password";
  chmod(path.c_str(), 0600);
  const absl::Status status = ReadTokenFile(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path), Not(HasSubstr("password"))));
  EXPECT_EQ(ReadTokenFile(testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTokenFile(path + ".none").status().code(), absl::StatusCode::kNotFound);
}

TEST(TokenFile, ReplacedFileIsReloadedDamagedOneIsNot) {
  const std::string path = Path();
  ASSERT_TRUE(WriteTokenFile(path, Token('1')).ok());
  std::vector<std::string> warnings;
  const std::unique_ptr<TokenFile> file =
      TokenFile::Open(path, [&](const std::string& text) { warnings.push_back(text); }).value();
  EXPECT_EQ(file->token(), Token('1'));
  // mkstemp creates files with mode 0600.
  ASSERT_TRUE(platform::WriteFileAtomically(path, Token('2')).ok());
  EXPECT_EQ(file->token(), Token('2'));
  EXPECT_THAT(warnings, IsEmpty());
  ASSERT_TRUE(platform::WriteFileAtomically(path, "nonsense").ok());
  EXPECT_EQ(file->token(), Token('2'));
  EXPECT_EQ(file->token(), Token('2'));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("holds no token")));
  std::remove(path.c_str());
  EXPECT_EQ(file->token(), Token('2'));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("holds no token"), HasSubstr("set token_file")));
}

TEST(TokenFile, ReplacementIsUsedOnceItsModeIsCorrected) {
  const std::string path = Path();
  ASSERT_TRUE(WriteTokenFile(path, Token('1')).ok());
  std::vector<std::string> warnings;
  const std::unique_ptr<TokenFile> file =
      TokenFile::Open(path, [&](const std::string& text) { warnings.push_back(text); }).value();
  ASSERT_TRUE(platform::WriteFileAtomically(path, Token('2')).ok());
  chmod(path.c_str(), 0644);
  EXPECT_EQ(file->token(), Token('1'));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("chmod 600 " + path)));
  chmod(path.c_str(), 0600);
  EXPECT_EQ(file->token(), Token('2'));
  EXPECT_THAT(warnings, SizeIs(1));
}

}  // namespace
}  // namespace lengthwise::rpc
