#include "specification/parse.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "random/stream.h"

namespace lengthwise::specification {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr auto kYaml = v1::SpecificationText::YAML;
constexpr auto kJson = v1::SpecificationText::JSON;
constexpr auto kTextProto = v1::SpecificationText::TEXT_PROTO;

v1::ExperimentSpecification Read(const std::string& text,
                                 v1::SpecificationText::Format format = kYaml) {
  const Parsed parsed = Parse(format, text);
  for (const catalogue::Problem& problem : parsed.problems) {
    ADD_FAILURE() << problem.field << ": " << problem.description;
  }
  return parsed.specification;
}

// Returns "field: description" of the only problem of an unreadable text.
std::string Refusal(const std::string& text, v1::SpecificationText::Format format = kYaml) {
  const Parsed parsed = Parse(format, text);
  EXPECT_FALSE(parsed.readable);
  if (parsed.problems.size() != 1) return absl::StrCat(parsed.problems.size(), " problems");
  return absl::StrCat(parsed.problems[0].field, ": ", parsed.problems[0].description);
}

TEST(ParseTest, ComponentMayBeOnlyAName) {
  const auto specification = Read("encodings: [none, sin_cos]");
  ASSERT_THAT(specification.encodings(), SizeIs(2));
  EXPECT_EQ(specification.encodings(1).name(), "sin_cos");
}

TEST(ParseTest, ParametersMayFollowTheName) {
  const auto beside = Read("encodings: {name: e, a: true, b: 3, c: text, d: '3', label: x}");
  const auto apart =
      Read("encodings: {name: e, label: x, parameters: {a: true, b: 3, c: text, d: '3'}}");
  EXPECT_EQ(beside.SerializeAsString().size(), apart.SerializeAsString().size());
  for (const auto* specification : {&beside, &apart}) {
    const auto& component = specification->encodings(0);
    EXPECT_EQ(component.label(), "x");
    EXPECT_TRUE(component.parameters().at("a").bool_value());
    EXPECT_EQ(component.parameters().at("b").number_value(), 3);
    EXPECT_EQ(component.parameters().at("c").string_value(), "text");
    EXPECT_EQ(component.parameters().at("d").string_value(), "3") << "quoted: a string";
  }
}

TEST(ParseTest, IntegerRangesIncludeBothEnds) {
  EXPECT_THAT(Read("seeds: 0..3").seeds(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Read("seeds: [7, 1..10 step 4, 20]").seeds(), ElementsAre(7, 1, 5, 9, 20));
  EXPECT_THAT(Read("seeds: ['18446744073709551614..18446744073709551615']").seeds(),
              ElementsAre(18446744073709551614u, 18446744073709551615u));
  EXPECT_THAT(Read(R"({"evaluation": {"lengths": ["5..6", 9]}})", kJson).evaluation().lengths(),
              ElementsAre(5, 6, 9));
}

TEST(ParseTest, LengthsMayBeARange) {
  const auto specification = Read("training: {lengths: 1..20}");
  EXPECT_EQ(specification.training().lengths().min(), 1);
  EXPECT_EQ(specification.training().lengths().max(), 20);
}

TEST(ParseTest, IntegersMayHaveExponents) {
  EXPECT_EQ(Read("training: {steps: 2e6}").training().steps(), 2'000'000);
}

TEST(ParseTest, OneValueMayStandForAList) {
  const auto specification = Read("{tasks: bucket_sort, learning_rates: 1e-3, seeds: 5}");
  EXPECT_EQ(specification.tasks(0).name(), "bucket_sort");
  EXPECT_THAT(specification.learning_rates(), ElementsAre(1e-3));
  EXPECT_THAT(specification.seeds(), ElementsAre(5));
}

TEST(ParseTest, FieldWithoutAValueIsUnset) {
  const auto specification = Read("{name: x, training: , seeds: null, description: ~}");
  EXPECT_FALSE(specification.has_training());
  EXPECT_THAT(specification.seeds(), IsEmpty());
}

TEST(ParseTest, AliasHasItsAnchorsValue) {
  const auto specification =
      Read("training: {steps: &n 500, report_every_steps: *n}\nevaluation: {every_steps: *n}");
  EXPECT_EQ(specification.training().report_every_steps(), 500);
  EXPECT_EQ(specification.evaluation().every_steps(), 500);
}

TEST(ParseTest, SkipsByteOrderMark) { EXPECT_EQ(Read("\xEF\xBB\xBFname: x").name(), "x"); }

TEST(ParseTest, SyntaxErrorsHaveALocation) {
  EXPECT_EQ(Refusal("name: x\ntasks: [a,\n"), "line 3, column 1: end of sequence flow not found");
  // yaml-cpp 0.8 appends the anchor's name.
  EXPECT_THAT(Refusal("name: x\ntraining: {steps: *n}"),
              MatchesRegex("line 2, column 19: the referenced anchor is not defined(: n)?"));
  EXPECT_THAT(Refusal("{\"name\": \"x\",\n  }", kJson),
              HasSubstr("line 2, column 3: syntax error while parsing object key"));
  EXPECT_EQ(Refusal("name: \"x\"\ntraining { steps: many }", kTextProto),
            "line 2, column 19: Expected integer, got: many");
}

TEST(ParseTest, JsonIsStrict) {
  EXPECT_THAT(Refusal("{name: 'x'}", kJson), HasSubstr("syntax error"));
  EXPECT_THAT(Refusal("{\"learning_rates\": [NaN]}", kJson), HasSubstr("syntax error"));
  EXPECT_THAT(Refusal("{\"learning_rates\": [1e999]}", kJson),
              HasSubstr("not readable as JSON: number overflow"));
}

TEST(ParseTest, OneDocumentIsExpected) {
  EXPECT_EQ(Refusal(""), ": the specification is empty; it needs at least a name");
  EXPECT_EQ(Refusal("# nothing\n"), ": the specification is empty; it needs at least a name");
  EXPECT_EQ(Refusal("name: a\n---\nname: b\n"),
            "line 2, column 1: a second document; expected one");
  EXPECT_EQ(Refusal("[a]"), ": got a list, expected fields and their values");
  EXPECT_EQ(Refusal("name: x", v1::SpecificationText::FORMAT_UNSPECIFIED),
            "format: expected YAML, JSON or TEXT_PROTO");
}

TEST(ParseTest, RefusesBytesThatAreNoText) {
  EXPECT_EQ(Refusal("name: x\ntasks: \xff\xfe"), "line 2: not valid UTF-8");
  EXPECT_EQ(Refusal(std::string("name: x\0", 8)),
            "line 1: a control character (byte 0x00), expected text");
  // yaml-cpp treats this byte as the end of the file.
  EXPECT_EQ(Refusal("name: x\n\x04\nseeds: [-1]"),
            "line 2: a control character (byte 0x04), expected text");
}

TEST(ParseTest, UnknownFieldsOfTextFormatHaveAPath) {
  const Parsed parsed = Parse(kTextProto,
                              "training { packing { tokenz: 1 } lengths { mim: 1 } }\n"
                              "evaluation { projection { x: 1 } attention_inputs { x: 1 } }\n"
                              "network_overrides { x: 1 }\n"
                              "tasks { x: 1 }\n");
  std::vector<std::string> fields;
  for (const catalogue::Problem& problem : parsed.problems) fields.push_back(problem.field);
  EXPECT_THAT(fields, ElementsAre("training.packing.tokenz", "training.lengths.mim",
                                  "evaluation.projection.x", "evaluation.attention_inputs.x",
                                  "network_overrides.x", "x"))
      << "components occur in several places";
}

TEST(ParseTest, DeepNestingIsRefusedInEveryFormat) {
  EXPECT_THAT(Refusal(absl::StrCat("a: ", std::string(40, '['), std::string(40, ']'))),
              HasSubstr("nested deeper than 32 levels"));
  EXPECT_FALSE(Parse(kYaml, std::string(500'000, '[')).readable);
  EXPECT_THAT(Refusal(std::string(500'000, '['), kJson), HasSubstr("nested deeper than 32 levels"));
  std::string block;
  for (int i = 0; i < 40; ++i) absl::StrAppend(&block, std::string(i, ' '), "a:\n");
  EXPECT_THAT(Refusal(block), HasSubstr("nested deeper than 32 levels"));
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "training {";
  const Parsed parsed = Parse(kTextProto, text);
  EXPECT_FALSE(parsed.readable);
}

TEST(ParseTest, ExponentialAliasesAreNotExpanded) {
  // Ten levels of aliases, each ten times the size of the one before.
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    absl::StrAppend(&text, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&text, "*a", i - 1, ", ");
    absl::StrAppend(&text, "]\n");
  }
  EXPECT_THAT(Parse(kYaml, text).problems, SizeIs(10)) << "ten unknown fields";

  // A thousand aliases of one component with a thousand parameters.
  text = "a: &a {name: x";
  for (int i = 0; i < 1'000; ++i) absl::StrAppend(&text, ", p", i, ": 1");
  absl::StrAppend(&text, "}\nencodings: [");
  for (int i = 0; i < 1'000; ++i) absl::StrAppend(&text, "*a, ");
  const Parsed parsed = Parse(kYaml, absl::StrCat(text, "]\n"));
  ASSERT_THAT(parsed.problems, SizeIs(2));
  EXPECT_EQ(parsed.problems[1].description, "more than 200000 values, counting those of aliases");
  EXPECT_LT(parsed.specification.encodings_size(), 250);
}

TEST(ParseTest, SelfReferencingAliasTerminates) {
  EXPECT_THAT(Parse(kYaml, "encodings: &a [*a]").problems, SizeIs(1));
  EXPECT_THAT(Parse(kYaml, "training: &a {training: *a}").problems, SizeIs(1));
}

TEST(ParseTest, LongListsOfRangesDoNotGrow) {
  const Parsed parsed = Parse(kYaml, "seeds: [0..999999, 0..999999, 1, 0..999999]");
  EXPECT_THAT(parsed.problems, SizeIs(3));
  EXPECT_EQ(parsed.specification.seeds_size(), 1'000'000);
}

// A short mutation test; tests/fuzz searches longer.
TEST(ParseTest, MutatedTextsNeverCrash) {
  const std::string texts[] = {
      "name: x\ntraining: {steps: &a 10, lengths: 1..20, clip_norm: *a}\nencodings:\n  - none\n"
      "  - {name: 'sin_cos', randomized: true}\nseeds: [0..9, 3e1]\ndescription: |\n  text\n",
      R"({"name": "x", "training": {"steps": 1e3, "lengths": {"min": 1}}, "seeds": ["0..9", -1],
          "encodings": [{"name": "s", "parameters": {"a": true, "b": null}}]})",
      "name: 'x' training { steps: 3 lengths { min: 1 } } seeds: [1, 2] encodings { name: \"s\" "
      "parameters { key: \"a\" value { number_value: 1 } } }"};
  const v1::SpecificationText::Format formats[] = {kYaml, kJson, kTextProto};
  const std::string bytes = "\"'{}[]:,-&*|>#!%@~?.\n\t \\\x01\x80\xc3<0eE";
  random::Stream stream(1, random::Purpose::kPreview, 0);
  int readable = 0;
  for (int round = 0; round < 6'000; ++round) {
    std::string text = texts[round % 3];
    const uint32_t mutations = 1 + stream.Below(4);
    for (uint32_t m = 0; m < mutations; ++m) {
      const size_t at = stream.Below(static_cast<uint32_t>(text.size()));
      const char byte = bytes[stream.Below(static_cast<uint32_t>(bytes.size()))];
      switch (stream.Below(4)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.erase(at, 1 + stream.Below(5));
          break;
        default:
          text.insert(at, text.substr(stream.Below(static_cast<uint32_t>(text.size())), 20));
      }
      if (text.empty()) text = "x";
    }
    const Parsed parsed = Parse(formats[round % 3], text);
    EXPECT_TRUE(parsed.readable || !parsed.problems.empty()) << text;
    readable += parsed.readable;
  }
  EXPECT_GT(readable, 500) << "the mutations are too coarse to reach the inner parts";
}

TEST(ParseTest, UnreadableValuesKeepIndices) {
  const Parsed parsed = Parse(kYaml, "{learning_rates: [1, x, 3], encodings: [a, [], c]}");
  EXPECT_THAT(parsed.specification.learning_rates(), ElementsAre(1, 0, 3));
  EXPECT_EQ(parsed.specification.encodings(2).name(), "c");
  EXPECT_THAT(parsed.unread, ElementsAre("learning_rates[1]", "encodings[1]"));
}

}  // namespace
}  // namespace lengthwise::specification
