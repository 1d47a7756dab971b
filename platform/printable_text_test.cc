#include "platform/printable_text.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

using ::testing::Eq;

TEST(PrintableTextTest, KeepsPrintableText) {
  for (const std::string text :
       {"", "loss 0.5", "two\nlines\tand a tab", "é ß 猫 🐈 ± ┊ \\x1b", "a\u200Db\u200B"}) {
    EXPECT_THAT(PrintableText(text), Eq(text));
    EXPECT_TRUE(IsPrintable(text)) << text;
  }
}

TEST(PrintableTextTest, EscapesTerminalControls) {
  const std::pair<std::string, std::string> kCases[] = {
      {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
      {"\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"},
      {"100 %\rdone", "100 %\\x0ddone"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"\x7f", "\\x7f"},
      {"\u009b31m", "\\u009b31m"},  // CSI of C1
      {"abc\u202Etxt.exe", "abc\\u202etxt.exe"},
      {"\u2066\u2069\u200F\u061C", "\\u2066\\u2069\\u200f\\u061c"},
      {"one\u2028two", "one\\u2028two"},
  };
  for (const auto& [text, expected] : kCases) {
    EXPECT_THAT(PrintableText(text), Eq(expected));
    EXPECT_FALSE(IsPrintable(text)) << expected;
  }
}

TEST(PrintableTextTest, ShellWordIsReadBackByAShell) {
  EXPECT_EQ(ShellWord("/home/ada/runs-1"), "/home/ada/runs-1");
  for (const std::string word : {"", "with space", "~/runs", "it's", "$HOME", "a;b", "*", "\"",
                                 "\\", "a\nb", "#", "é", "!x"}) {
    const std::string command = absl::StrCat("printf %s ", ShellWord(word));
    FILE* output = popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    std::string text(100, '\0');
    text.resize(fread(text.data(), 1, text.size(), output));
    EXPECT_EQ(pclose(output), 0) << command;
    EXPECT_EQ(text, word);
  }
}

TEST(PrintableTextTest, EscapesBytesThatAreNotUtf8) {
  EXPECT_THAT(PrintableText("\x9b"
                            "31m"),
              Eq("\\x9b31m"));
  EXPECT_THAT(PrintableText("\xc0\x9b"), Eq("\\xc0\\x9b"));           // ESC in two bytes
  EXPECT_THAT(PrintableText("\xe2\x80"), Eq("\\xe2\\x80"));           // truncated
  EXPECT_THAT(PrintableText("\xed\xa0\x80"), Eq("\\xed\\xa0\\x80"));  // surrogate
  EXPECT_FALSE(IsPrintable("\xff"));
}

TEST(PrintableTextTest, EscapesEveryUnicodeControl) {
  // Categories Cc, Zl and Zp of Unicode, and its property Bidi_Control.
  std::vector<int> controls = {0x61C, 0x200E, 0x200F, 0x2028, 0x2029};
  for (int c = 0x80; c <= 0x9F; ++c) controls.push_back(c);
  for (int c = 0x202A; c <= 0x202E; ++c) controls.push_back(c);
  for (int c = 0x2066; c <= 0x2069; ++c) controls.push_back(c);
  for (const int c : controls) {
    std::string text;
    if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    }
    EXPECT_FALSE(IsPrintable(text)) << c;
  }
}

TEST(PrintableTextTest, LineHasNoNewlineOrTab) {
  EXPECT_THAT(PrintableLine("one\ntwo\tthree\r"), Eq("one two three\\x0d"));
}

TEST(PrintableTextTest, IsIdempotent) {
  const std::string once = PrintableText("\x1b[2J\u202E\xff");
  EXPECT_THAT(PrintableText(once), Eq(once));
}

TEST(Utf8Test, AcceptsWholeCharactersOnly) {
  for (const std::string text : {"", "a\tb\x1b", "\u00e9\u202e", "\uffff", "\U0010ffff"}) {
    EXPECT_TRUE(IsUtf8(text)) << PrintableText(text);
  }
  for (const std::string text : {"\xff", "a\x80", "\xe2\x80", "\xc0\x9b", "\xe0\x80\xaf",
                                 "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(text)) << PrintableText(text);
  }
}

TEST(Utf8PrefixTest, NeverEndsInsideACharacter) {
  EXPECT_EQ(Utf8Prefix("a\u00e9b", 4), "a\u00e9b");
  EXPECT_EQ(Utf8Prefix("a\u00e9b", 3), "a\u00e9");
  EXPECT_EQ(Utf8Prefix("a\u00e9b", 2), "a");
  EXPECT_EQ(Utf8Prefix("\u00e9", 1), "");
  EXPECT_EQ(Utf8Prefix("", 0), "");
}

}  // namespace
}  // namespace lengthwise::platform
