// Files that an accident or an attacker gives as examples: each is accepted, or refused with its
// line and, where it has one, its field. None crashes the reader or keeps it busy.
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/printable_text.h"
#include "tasks/examples/example_set.h"

namespace lengthwise::tasks::examples {
namespace {

struct HostileFile {
  std::string bytes;
  // The start of the refusal, with its place. Empty: the file is accepted.
  std::string says;
  Options options = {};
};

constexpr char kExample[] = "{\"input\": [1, 0], \"target\": [1, 0]}\n";

void ExpectAnswers(const std::vector<HostileFile>& cases) {
  for (const HostileFile& one : cases) {
    SCOPED_TRACE(one.bytes.substr(0, 300));
    const std::string path = absl::StrCat(::testing::TempDir(), "/hostile.jsonl");
    std::ofstream(path, std::ios::binary) << one.bytes;
    Problems problems;
    // The file is also that of the test, so that accepted symbols occur in training.
    const File file = {.path = path, .name = "f.jsonl"};
    const absl::Status status = Load(file, file, one.options, problems).status();
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    const std::string answer(status.message());
    EXPECT_LT(answer.size(), 10'000u);
    EXPECT_EQ(platform::PrintableText(answer), answer) << "it is shown on terminals";
    if (one.says.empty()) {
      EXPECT_EQ(answer, "");
    } else {
      EXPECT_THAT(answer, ::testing::StartsWith(one.says));
    }
  }
}

// Each pair is a second line and what is said of it.
void ExpectAnswersToLines(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::vector<HostileFile> cases;
  for (const auto& [line, says] : lines) {
    cases.push_back({absl::StrCat(kExample, line, "\n"),
                     says.empty() ? "" : absl::StrCat("f.jsonl:2: ", says)});
  }
  ExpectAnswers(cases);
}

std::string WithInput(const std::string& value) {
  return absl::StrCat("{\"input\": ", value, ", \"target\": [1, 0]}");
}

std::string WithField(const std::string& field) {
  return absl::StrCat("{\"input\": [1, 0], \"target\": [1, 0], ", field, "}");
}

std::string Widened(const std::string& text, size_t before, size_t after) {
  std::string wide;
  for (const char c : text) wide += std::string(before, '\0') + c + std::string(after, '\0');
  return wide;
}

TEST(HostileFilesTest, LinesThatAreNoJsonNameTheirColumn) {
  constexpr char kColumn[] = "column ";
  ExpectAnswersToLines({
      {"{\"input\": [1], \"target\": [1]", kColumn},
      {"{\"input\": [1] \"target\": [1]}", kColumn},
      {"{\"input\": [1], \"target\": [1],}", kColumn},
      {"{'input': [1], 'target': [1]}", kColumn},
      {"{input: [1], target: [1]}", kColumn},
      {"{\"input\": [1], \"target\": [1]} {}", kColumn},
      {"{\"input\": [1], \"target\": [1]}, ", kColumn},
      {"# {\"input\": [1], \"target\": [1]}", kColumn},
      {"{\"input\": [1], /* */ \"target\": [1]}", kColumn},
      {WithInput("[NaN]"), kColumn},
      {WithInput("[Infinity]"), kColumn},
      {WithInput("[-Infinity]"), kColumn},
      {WithInput("[01]"), kColumn},
      {WithInput("[+1]"), kColumn},
      {WithInput("[.5]"), kColumn},
      {WithInput("[1.]"), kColumn},
      {WithInput("[0x1]"), kColumn},
      {WithInput("[1e]"), kColumn},
      {WithInput("[1,]"), kColumn},
      {WithInput("\"\\ud800\""), kColumn},
      {WithInput("\"\\x41\""), kColumn},
      {WithInput("\"a\xff\""), kColumn},
      {WithInput("\"a\xc0\xaf\""), kColumn},
      {WithInput("\"a\xed\xa0\x80\""), kColumn},
      {WithInput("\"a\xf4\x90\x80\x80\""), kColumn},
      {WithInput("\"a\xe2\x82"), kColumn},
      {WithInput("\"a\tb\""), kColumn},
      {WithInput("\"a\x01\""), kColumn},
      {WithInput("[1e999]"), "column 16: the number 1e999 is too large"},
      {WithInput("[-1e999]"), "column 17: the number -1e999 is too large"},
      {std::string("{\"input\": [1\0]}", 15),
       "has a NUL byte at column 13; save the file as UTF-8"},
      {"<html>", kColumn},
      {"\x80\x04\x95", kColumn},
  });
}

TEST(HostileFilesTest, ValuesOfAnotherTypeNameTheirField) {
  constexpr char kInput[] = "input: got ";
  constexpr char kMask[] = "mask: got ";
  constexpr char kLength[] = "length: got ";
  ExpectAnswersToLines({
      {WithInput("5"), kInput},
      {WithInput("null"), kInput},
      {WithInput("true"), kInput},
      {WithInput("{}"), kInput},
      {WithInput("[true]"), kInput},
      {WithInput("[null]"), kInput},
      {WithInput("[\"a\"]"), kInput},
      {WithInput("[[1]]"), kInput},
      {WithInput("[{}]"), kInput},
      {WithInput(std::string(100'000, '[')), kInput},
      {WithInput("[]"), "input is empty"},
      {WithInput("\"\""), "input is empty"},
      {WithInput("\"ab\""), "input and target must both be text"},
      {WithInput("\"a\\u0000\""), "input has a NUL character"},
      {"{\"input\": [1], \"target\": []}", "target is empty"},
      {"{\"input\": [1], \"target\": null}", "target: got null"},
      {"{\"input\": [1], \"target\": {\"input\": [1]}}", "target: got an object"},
      {"{\"input\": \"a\", \"target\": \"b\"}", "has text, but the lines before it have lists"},
      {"{\"input\": [1]}", "has no \"target\""},
      {"{\"target\": [1]}", "has no \"input\""},
      {"{}", "has no \"input\""},
      {"{\"Input\": [1], \"target\": [1]}", "unknown field \"Input\""},
      {"{\"input\": [1], \"\\u001b[2J\": [1]}", "unknown field \"\\x1b[2J\""},
      {WithField("\"input\": [1]"), "\"input\" is given twice"},
      {"[1, 0]", "got a list, expected an object"},
      {"5", "got 5, expected an object"},
      {"null", "got null, expected an object"},
      {"\"text\"", "got \"text\", expected an object"},
      {WithField("\"mask\": [2, 0]"), kMask},
      {WithField("\"mask\": [0.5, 0]"), kMask},
      {WithField("\"mask\": [null, 0]"), kMask},
      {WithField("\"mask\": \"10\""), kMask},
      {WithField("\"mask\": 1"), kMask},
      {WithField("\"mask\": {}"), kMask},
      {WithField("\"mask\": [1]"), "mask has 1 value, expected 2"},
      {WithField("\"mask\": []"), "mask has 0 values, expected 2"},
      {WithField("\"mask\": [true, false]"), ""},
      {WithField("\"length\": 0"), kLength},
      {WithField("\"length\": -1"), kLength},
      {WithField("\"length\": 1.5"), kLength},
      {WithField("\"length\": \"5\""), kLength},
      {WithField("\"length\": [5]"), kLength},
      {WithField("\"length\": true"), kLength},
      {WithField("\"length\": null"), kLength},
      {WithField("\"length\": 100001"), kLength},
      {WithField("\"length\": 18446744073709551616"), kLength},
      {WithField("\"length\": 1e999"), "column "},
  });
}

TEST(HostileFilesTest, NumbersBeyondTheFormAreNamed) {
  ExpectAnswersToLines({
      {WithInput("[70000, 0]"), "has the symbol 70000, expected integers from 0 to 65535"},
      {WithInput("[-1, 0]"), ""},
      {WithInput("[5000000000, 0]"), ""},
      {WithInput("[18446744073709551616, 0]"), "input has the number 1.84467e+19"},
      {WithInput("[1e16, 0]"), "input has the number 1e+16, expected at most 1e+15"},
      {WithInput("[-1e300, 0]"), "input has the number -1e+300"},
  });
}

TEST(HostileFilesTest, WholeFilesNameTheirFirstLine) {
  const std::string two = absl::StrCat(kExample, "{\"input\": [0], \"target\": [0]}\n");
  std::string words;
  for (int i = 0; i <= kMostSymbols; ++i) absl::StrAppend(&words, i == 0 ? "" : " ", "w", i);
  std::string many = "1";
  for (int i = 0; i < 100'000; ++i) many += ",1";
  ExpectAnswers({
      {two, ""},
      {"\xEF\xBB\xBF" + two, ""},
      {absl::StrReplaceAll(two, {{"\n", "\r\n"}}), ""},
      {two.substr(0, two.size() - 1), ""},
      {"\n  \n" + two, ""},
      {"", "f.jsonl: has no examples"},
      {"\xEF\xBB\xBF", "f.jsonl: has no examples"},
      {"\n\r\n \n", "f.jsonl: has no examples"},
      {absl::StrReplaceAll(two, {{"\n", "\r"}}), "f.jsonl:1: column "},
      {"\xff\xfe" + Widened(two, 0, 1), "f.jsonl:1: has a NUL byte"},
      {"\xfe\xff" + Widened(two, 1, 0), "f.jsonl:1: has a NUL byte"},
      {Widened(two, 0, 3), "f.jsonl:1: has a NUL byte"},
      {"\x1f\x8b\x08" + std::string(20, '\xe5'), "f.jsonl:1: is compressed"},
      {"\x1f\x8b", "f.jsonl:1: is compressed"},
      {std::string("PK\x03\x04\0\0", 6), "f.jsonl:1: has a NUL byte"},
      {"[" + two + "]", "f.jsonl:1: is a JSON array"},
      {"{\n  \"input\": [1],\n  \"target\": [1]\n}\n", "f.jsonl:1: column "},
      {"input,target\n1 0,1 0\n", "f.jsonl:1: is a line of columns"},
      {"1 0\t1 0\n", "f.jsonl:1: is a line of columns"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "f.jsonl:1: column "},
      {std::string(5 << 20, ' '), "f.jsonl:1: has more than 4194304 bytes"},
      {"{\"input\": [" + many + "], \"target\": [1]}", "f.jsonl:1: input has more than 100000"},
      {"{\"input\": \"" + words + "\", \"target\": \"a\"}",
       "f.jsonl: has 65537 distinct symbols",
       {.words = true}},
      {"{\"input\": \"  \", \"target\": \"a\"}", "f.jsonl:1: input has 0 symbols", {.words = true}},
      {absl::StrCat(kExample, WithField("\"mask\": [0, 0]"), "\n"), "", {.as_numbers = true}},
      {WithField("\"mask\": [0, 0]"), "f.jsonl:1: mask is 0 throughout", {.as_numbers = true}},
  });
}

}  // namespace
}  // namespace lengthwise::tasks::examples
