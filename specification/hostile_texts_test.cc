// Texts that an accident or an attacker gives as a specification: each is accepted, or refused with
// its line or field. None crashes the reader or keeps it busy.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "platform/printable_text.h"
#include "specification/resolve.h"

namespace lengthwise::specification {
namespace {

struct HostileText {
  std::string text;
  // Part of the refusal, with its place. Empty: the text is accepted.
  std::string says;
};

std::string AnswerTo(const std::string& text, v1::SpecificationText::Format format) {
  v1::SpecificationText message;
  message.set_format(format);
  message.set_text(text);
  const absl::Status status = Resolve(message, Limits()).status();
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(status.ok() || !status.message().empty());
  return std::string(status.message());
}

void ExpectAnswers(const std::vector<HostileText>& cases, v1::SpecificationText::Format format) {
  for (const HostileText& one : cases) {
    SCOPED_TRACE(one.text.substr(0, 300));
    const std::string answer = AnswerTo(one.text, format);
    EXPECT_LT(answer.size(), 10'000u);
    EXPECT_EQ(platform::PrintableText(answer), answer) << "it is shown on terminals";
    if (one.says.empty()) {
      EXPECT_EQ(answer, "");
    } else {
      EXPECT_THAT(answer, ::testing::HasSubstr(one.says));
    }
  }
}

// A valid specification in which `line` replaces the line of its field, or is the ninth.
std::string WithLine(absl::string_view line) {
  std::string text;
  bool replaces = false;
  for (const absl::string_view usual :
       {"name: right", "tasks: [bucket_sort]",
        "networks: [{name: encoder, blocks: 1, heads: 2, d_model: 16}]",
        "encodings: [none, sin_cos]", "learning_rates: [0.001]", "seeds: [0]",
        "training: {steps: 10, lengths: 1..20}", "evaluation: {lengths: [5, 10], sequences: 20}"}) {
    const bool same = usual.substr(0, usual.find(':')) == line.substr(0, line.find(':'));
    absl::StrAppend(&text, same ? line : usual, "\n");
    replaces = replaces || same;
  }
  return replaces ? text : absl::StrCat(text, line, "\n");
}

std::string Repeated(absl::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) absl::StrAppend(&text, part);
  return text;
}

// Each character with `before` and `after` zero bytes: UTF-16 and UTF-32.
std::string Widened(const std::string& text, size_t before, size_t after) {
  std::string wide;
  for (const char c : text) wide += std::string(before, '\0') + c + std::string(after, '\0');
  return wide;
}

// Ten levels of aliases, each ten times the size of the one before.
std::string ManyLaughs() {
  std::string text = "laughs:\n- &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    absl::StrAppend(&text, "- &a", i, " [", Repeated(absl::StrCat("*a", i - 1, ", "), 10), "]\n");
  }
  return text;
}

TEST(HostileTextsTest, BytesThatAreNoTextNameTheirLine) {
  const std::string right = WithLine("seeds: [0]");
  ExpectAnswers(
      {
          {right, ""},
          {"\xEF\xBB\xBF" + right, ""},
          {absl::StrReplaceAll(right, {{"\n", "\r\n"}}), ""},
          {right.substr(0, right.size() - 1), ""},
          {"\xff\xfe" + Widened(right, 0, 1), "line 1: not valid UTF-8"},
          {"\xfe\xff" + Widened(right, 1, 0), "line 1: not valid UTF-8"},
          {Widened(right, 0, 1), "line 1: a control character (byte 0x00)"},
          {Widened(right, 3, 0), "line 1: a control character (byte 0x00)"},
          {WithLine("description: caf\xe9"), "line 9: not valid UTF-8"},
          {WithLine("description: \xc0\xaf"), "line 9: not valid UTF-8"},
          {WithLine("description: \xed\xa0\x80"), "line 9: not valid UTF-8"},
          {WithLine("description: \xf4\x90\x80\x80"), "line 9: not valid UTF-8"},
          {WithLine("description: \xe2\x82"), "line 9: not valid UTF-8"},
          {WithLine("description: \xf0\x9f\x98\x80"), ""},
          {WithLine(absl::string_view("description: a\0b", 16)),
           "line 9: a control character (byte 0x00)"},
          {WithLine("description: a\x04"), "line 9: a control character (byte 0x04)"},
          {WithLine("description: a\x0c"), "line 9: a control character (byte 0x0c)"},
          {WithLine("description: a\x1b[2J"), "line 9: a control character (byte 0x1b)"},
          {WithLine("description: a\x7f"), "line 9: a control character (byte 0x7f)"},
          {WithLine("description: a\u202Eb"), "description: has control characters"},
          {WithLine("description: \"a\\0b\""), "description: has control characters"},
          {WithLine("n\u0430me: x"), "unknown field"},
          {"\x1f\x8b\x08\x08" + std::string(20, '\xe5'), "line 1: not valid UTF-8"},
          {"\x1f\x8b", "line 1: not valid UTF-8"},
          {"PK\x03\x04", "line 1: a control character (byte 0x03)"},
      },
      v1::SpecificationText::YAML);
}

TEST(HostileTextsTest, NumbersBeyondTheirFieldAreNamed) {
  ExpectAnswers(
      {
          {WithLine("seeds: 18446744073709551615"), ""},
          {WithLine("seeds: 18446744073709551616"), "seeds: got 18446744073709551616"},
          {WithLine("seeds: 1e400"), "seeds: got 1e400"},
          {WithLine("seeds: -0.5"), "seeds: got -0.5"},
          {WithLine("seeds: 0..18446744073709551615"), "values, expected a list of at most"},
          {WithLine("seeds: -5..5"), "seeds: got \"-5..5\", expected integers from 0"},
          {WithLine("seeds: 5..1"), "seeds: got \"5..1\", expected a range such as"},
          {WithLine("seeds: 1..10 step 0"), "seeds: got \"1..10 step 0\", expected a range"},
          {WithLine("seeds: 1..10 step -1"), "seeds: got \"1..10 step -1\", expected a range"},
          {WithLine("seeds: 1..2..3"), "seeds: got \"1..2..3\", expected a range"},
          {WithLine("seeds: .."), "seeds: got \"..\", expected a range"},
          {WithLine("learning_rates: 1e999"), "learning_rates[0]: got inf"},
          {WithLine("learning_rates: -.inf"), "learning_rates[0]: got -inf"},
          {WithLine("learning_rates: [.nan]"), "learning_rates[0]: got nan"},
          {WithLine("learning_rates: nan"), "learning_rates[0]: got nan"},
          {WithLine("learning_rates: [-0.0]"), "learning_rates[0]: got -0"},
          {WithLine("learning_rates: 1e-400"), "learning_rates[0]: got 0"},
          {WithLine("learning_rates: 0x10"), ""},
          {WithLine("training: {steps: 1e3, lengths: 1..20}"), ""},
          {WithLine("training: {steps: \"10\", lengths: 1..20}"), ""},
          {WithLine("training: {steps: !!str 10, lengths: 1..20}"), ""},
          {WithLine("training: {steps: 1_000}"), "training.steps: got \"1_000\""},
          {WithLine("training: {steps: 0o17}"), "training.steps: got \"0o17\""},
          {WithLine("training: {steps: 1:30}"), "training.steps: got \"1:30\""},
          {WithLine("training: {steps: true}"), "training.steps: got true"},
          {WithLine("training: {steps: ~}"), "training.steps: required"},
          {WithLine("training: {steps: 9223372036854775808}"),
           "training.steps: got 9223372036854775808, expected an integer from"},
          {WithLine(absl::StrCat("training: {steps: ", Repeated("9", 100'000), "}")),
           "training.steps: got \"999"},
          {WithLine("training: {steps: 10, batch_size: -1}"), "training.batch_size: got -1"},
          {WithLine("training: {steps: 10, clip_norm: true}"), "training.clip_norm: got true"},
          {WithLine("training: {steps: 10, precision: 32}"), "training.precision: "},
          {WithLine("training: {steps: 10, without_replacement: 'true'}"),
           "training.without_replacement: got \"true\", expected true or false"},
          {WithLine("training: {steps: 10, without_replacement: yes}"),
           "training.without_replacement: got \"yes\", expected true or false"},
          {WithLine("training: {steps: 10, lengths: 1..999999999999}"),
           "training.lengths: got \"1..999999999999\", expected a range"},
          {WithLine("evaluation: {lengths: 1..2000000}"), "evaluation.lengths: got"},
          {WithLine("evaluation: {lengths: 100001}"), "evaluation.lengths: got 100001"},
          {WithLine("priority: 1001"), "priority: got 1001"},
          {WithLine(absl::StrCat("name: ", Repeated("n", 10'000))), "name: got"},
          {WithLine("name: ~"), "name: required"},
      },
      v1::SpecificationText::YAML);
}

TEST(HostileTextsTest, StructuresThatCannotBeNameTheirPlace) {
  const std::string right = WithLine("seeds: [0]");
  ExpectAnswers(
      {
          {"", "the specification is empty"},
          {"---\n", "the specification is empty"},
          {"hello", "got \"hello\", expected fields and their values"},
          {right + "---\n" + right, "line 9, column 1: a second document"},
          {right + "...\n" + right, "a second document"},
          {"%YAML 2.0\n---\n" + right, "line 1, column "},
          {WithLine(absl::StrCat("x: ", Repeated("[", 33), Repeated("]", 33))),
           "nested deeper than 32 levels"},
          {WithLine(absl::StrCat("x: ", Repeated("[", 100'000))), "line 9, column "},
          {WithLine(absl::StrCat("x: ", Repeated("{", 100'000))), "line 9, column "},
          {WithLine(absl::StrCat("x:\n  ", Repeated("- ", 100'000), "1")), "line 10, column "},
          {WithLine(absl::StrCat("x:\n  ", Repeated("? ", 100'000), "1")), "line 10, column "},
          {WithLine("? [a]\n: b"), "a list or map as a key"},
          {WithLine("? a\n: b"), "a: unknown field"},
          {ManyLaughs() + WithLine("encodings: *a9"), "encodings[0]: got a list"},
          {WithLine("encodings: &a [*a]"), "encodings[0]: got a list"},
          {WithLine("training: &a {steps: 10, packing: *a}"), "training.packing.steps: unknown"},
          {WithLine("encodings: [*late]"), "line 4, column "},
          {WithLine("seeds: [&a 1, &a 2]"), ""},
          {WithLine("seeds: [&a &b 1]"), "line 6, column "},
          {WithLine("seeds: [&"), "line 6, column "},
          {WithLine("seeds: [*"), "line 6, column "},
          {WithLine("training: {<<: {steps: 10}, steps: 10}"), "training.<<: unknown field"},
          {right + "seeds: 1\n", "seeds: given twice"},
          {WithLine("training: {steps: 10, batchSize: 2, batch_size: 2}"),
           "training.batch_size: given twice"},
          {WithLine("encodings: [{name: sin_cos, randomized: true, randomized: true}]"),
           "encodings[0].randomized: given twice"},
          {WithLine("encodings: [{name: formula, logits: \"a * q\", a: {initial: 1, initial: 2}}]"),
           "encodings[0].a.initial: given twice"},
          {WithLine("encodings: [none, ~]"), "encodings[1]: got nothing, expected a name"},
          {WithLine("encodings: !!python/object/apply:os.system [id]"), "line 4, column "},
          {WithLine("seeds: !!binary AAAA"), "line 6, column "},
          {WithLine("seeds: !<tag:example.org,2000:x> 1"), "line 6, column "},
          // The text's end closes a quote.
          {WithLine("description: \"abc"), ""},
          {WithLine("name: 'abc"), "name: got \"abc tasks: "},
          {WithLine("description: \"\\q\""), "line 9, column "},
          {WithLine("description: \"\\U00110000\""), "line 9, column "},
          {WithLine("seeds: [0"), "line "},
          {WithLine("seeds: 0]"), "seeds: got \"0]\""},
          {WithLine("seeds: {0"), "line "},
          {WithLine(absl::StrCat("seeds: [", Repeated("0,", 200'001), "0]")),
           "more than 200000 values"},
      },
      v1::SpecificationText::YAML);
}

TEST(HostileTextsTest, JsonNamesTheFieldOrTheLine) {
  ExpectAnswers(
      {
          {"", "line 1, column 1: "},
          {"{\"name\": \"x\",\n\"learning_rates\": [1e999]}",
           "learning_rates: not readable as JSON"},
          {"{\"seeds\": [NaN]}", "line 1, column "},
          {"{\"seeds\": [Infinity]}", "line 1, column "},
          {"{\"seeds\": [01]}", "line 1, column "},
          {"{\"seeds\": [1,]}", "line 1, column "},
          {"{\"seeds\": [1]} {}", "line 1, column "},
          {"{\"seeds\": [1]", "line 1, column "},
          {"{'seeds': [1]}", "line 1, column "},
          {"{\"seeds\": [1], // one\n\"name\": \"x\"}", "line 1, column "},
          {"{\"name\": \"\\ud800\"}", "line 1, column "},
          {"{\"name\": \"a\\u0000\"}", "name: got "},
          {"{\"seeds\": [1], \"seeds\": [2]}", "seeds: given twice"},
          {"{\"seeds\": " + Repeated("[", 100'000), "seeds: nested deeper than 32 levels"},
          {"{\"seeds\": [" + Repeated("0,", 200'001) + "0]}", "seeds: more than 200000 values"},
          {"[]", "got a list, expected fields and their values"},
          {"null", "the specification is empty"},
      },
      v1::SpecificationText::JSON);
}

// [[1]] is a value of no field.
void ExpectWrongTypesToBeNamed(const google::protobuf::Descriptor& message,
                               const std::string& path) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const std::string below = path.empty() ? field.name() : absl::StrCat(path, ".", field.name());
    const auto levels = static_cast<int>(std::count(below.begin(), below.end(), '.'));
    const std::string text =
        absl::StrCat(absl::StrReplaceAll(below, {{".", ": {"}}), ": [[1]]", Repeated("}", levels));
    const std::string answer = AnswerTo(text, v1::SpecificationText::YAML);
    EXPECT_THAT(answer, ::testing::ContainsRegex(
                            absl::StrCat("(^|\n)", below, "(\\[0\\])?: got a list, expected ")))
        << text;
    const google::protobuf::Descriptor* const type = field.message_type();
    // The others have shorthands.
    if (type == nullptr || field.is_repeated() || type->name() == "Component" ||
        type->name() == "LengthRange") {
      continue;
    }
    ExpectWrongTypesToBeNamed(*type, below);
  }
}

TEST(HostileTextsTest, WrongTypeOfEachFieldIsNamed) {
  ExpectWrongTypesToBeNamed(*v1::ExperimentSpecification::descriptor(), "");
}

}  // namespace
}  // namespace lengthwise::specification
