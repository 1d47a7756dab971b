// Specifications with a user's PyTorch module.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/examples.h"
#include "specification/resolve.h"

namespace lengthwise::specification {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Grid> Resolved(const std::string& networks, const std::string& encodings,
                              const std::string& rest = "evaluation: {lengths: 4}") {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text(absl::StrCat(
      "name: right\ntasks: reverse_string\nnetworks: [", networks, "]\nencodings: [", encodings,
      "]\nlearning_rates: 1e-3\ntraining: {steps: 2, lengths: 1..4}\n", rest, "\n"));
  return Resolve(text, Limits());
}

std::string Python(const std::string& more = "") {
  return absl::StrCat("{name: python, file: net.py, class: Net, file_sha256: ",
                      std::string(64, 'a'), ", file_bytes: 300", more, "}");
}

std::string MistakeOf(const absl::StatusOr<Grid>& grid) {
  return grid.ok() ? "" : std::string(grid.status().message());
}

TEST(PythonNetworkTest, PairsThatDoNotFitAreLeftOut) {
  const auto grid = Resolved("encoder, " + Python(), "sin_cos, own, rope");
  ASSERT_TRUE(grid.ok()) << grid.status();
  std::vector<std::string> ids;
  for (const GridTrial& trial : grid->trials) ids.push_back(trial.id);
  EXPECT_THAT(ids, ElementsAre("reverse_string-encoder-sin_cos-lr0.001-seed0",
                               "reverse_string-encoder-rope-lr0.001-seed0",
                               "reverse_string-python-own-lr0.001-seed0"));
}

TEST(PythonNetworkTest, HeadsTakeEncodingsThatAreABias) {
  const auto grid =
      Resolved(Python(", heads: 4"),
               "own, alibi, fire, kerple_log, t5, {name: formula, logits: abs(q - k)}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->trials.size(), 6);
  for (const std::string other : {"rope", "sin_cos", "shaw", "{name: formula, embedding: q}"}) {
    EXPECT_THAT(MistakeOf(Resolved(Python(", heads: 4"), "own, " + other)),
                HasSubstr("encodings[1]: \"python\" takes the encoding \"own\""))
        << other;
  }
}

TEST(PythonNetworkTest, SequencesMayHaveTheirOwnPositions) {
  for (const std::string encoding : {"own", "alibi", "fire", "kerple_log", "t5"}) {
    const auto grid =
        Resolved(Python(", heads: 4"), absl::StrCat("{name: ", encoding,
                                                    ", positions: subset, max_position: 64, draws: "
                                                    "per_sequence}"));
    EXPECT_TRUE(grid.ok()) << grid.status();
  }
}

absl::StatusOr<Grid> ResolvedText(const std::string& encodings) {
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  text.set_text(
      absl::StrCat("name: right\ntasks: {name: decimal_addition, index_hints: false, coupling: "
                   "digits}\nnetworks: ",
                   Python(", heads: 2"), "\nencodings: [", encodings,
                   "]\nlearning_rates: 1e-3\ntraining: {steps: 2, batch_size: 4, lengths: 1..2, "
                   "packing: {tokens: 64}}\nevaluation: {lengths: 2}\n"));
  return Resolve(text, Limits());
}

TEST(PythonNetworkTest, LearnsText) {
  const auto grid = ResolvedText(
      "own, {name: own, positions: data, max_position: 64}, fire, "
      "{name: fire, positions: data, max_position: 64}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->trials.size(), 4);
}

TEST(PythonNetworkTest, FormulasOfTextDoNotKnowItsLength) {
  EXPECT_THAT(MistakeOf(ResolvedText("{name: formula, logits: -abs(q - k) / n}")),
              HasSubstr("encodings[0].logits: n is unknown while a text is continued"));
}

TEST(PythonNetworkTest, ArgumentsBecomeTextWithSortedNames) {
  const auto grid =
      Resolved(Python(", arguments: {width: 8, rate: 0.5, act: gelu, deep: {a: [1]}}"), "own");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->specification.networks(0).parameters().at("arguments").string_value(),
            R"({"act":"gelu","deep":{"a":[1]},"rate":0.5,"width":8})");
  const auto again = Resolve(grid->specification, Limits());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trials[0].pack->key, grid->trials[0].pack->key);
}

std::string Override(const std::string& parameter) {
  return absl::StrCat(
      "evaluation: {lengths: 4}\nnetwork_overrides: {encoding: own, network: {name: python, ",
      parameter, "}}");
}

TEST(PythonNetworkTest, OverriddenArgumentsBecomeTextToo) {
  const auto grid =
      Resolved(Python(", arguments: {width: 16}"), "own", Override("arguments: {width: 64}"));
  ASSERT_TRUE(grid.ok()) << grid.status();
  const v1::Component& network = grid->trials[0].pack->specification.network();
  EXPECT_EQ(network.parameters().at("arguments").string_value(), R"({"width":64})");
  const auto again = Resolve(grid->specification, Limits());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trials[0].pack->key, grid->trials[0].pack->key);
}

TEST(PythonNetworkTest, OverrideKeepsTheFile) {
  for (const std::string given : {"file: other.py", "file_sha256: a", "file_bytes: 4"}) {
    EXPECT_THAT(
        MistakeOf(Resolved(Python(), "own", Override(given))),
        HasSubstr(absl::StrCat("network_overrides[0].network.", given.substr(0, given.find(':')),
                               ": an override keeps the network's file")));
  }
}

TEST(PythonNetworkTest, FileIsOneOfTheFilesToUpload) {
  const auto grid =
      Resolved(Python(", label: a") + ", " + Python(", label: b, arguments: {x: 1}"), "own");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(DataFilesOf(grid->specification),
              ElementsAre(DataFile{.sha256 = std::string(64, 'a'), .bytes = 300}));
}

TEST(PythonNetworkTest, MistakesAreNamed) {
  EXPECT_THAT(MistakeOf(Resolved("{name: python, class: Net}", "own")),
              HasSubstr("networks[0].file: required"));
  EXPECT_THAT(MistakeOf(Resolved("{name: python, file: net.py}", "own")),
              HasSubstr("networks[0].class: required"));
  EXPECT_THAT(MistakeOf(Resolved("{name: python, file: net.py, class: Net}", "own")),
              HasSubstr("nothing is known of the file net.py"));
  EXPECT_THAT(MistakeOf(Resolved(Python(", arguments: 3"), "own")),
              HasSubstr("networks[0].arguments: expected a map"));
  for (const std::string given : {"{x: .inf}", "{x: [1, .nan]}", "{x: {y: -.inf}}"}) {
    EXPECT_THAT(MistakeOf(Resolved(Python(", arguments: " + given), "own")),
                HasSubstr("networks[0].arguments: has a number that is infinite or not a number"));
  }
  EXPECT_THAT(MistakeOf(Resolved(Python(", arguments: {outputs: 3}"), "own")),
              HasSubstr("networks[0].arguments.outputs: the task gives it"));
  EXPECT_THAT(MistakeOf(Resolved(Python(), "sin_cos")),
              HasSubstr("networks[0]: \"python\" takes the encoding \"own\""));
  EXPECT_THAT(MistakeOf(Resolved("encoder", "own, rope")),
              HasSubstr("encodings[0]: \"own\" is for the network \"python\""));
  EXPECT_THAT(MistakeOf(Resolved(Python(), "{name: own, randomized: true, max_position: 3}")),
              HasSubstr("encodings[0].max_position"));
}

TEST(PythonNetworkTest, WhatIsNotThereIsRefusedByName) {
  for (const std::string analysis : {"projection: {lengths: 4}", "embedding_noise: 0.1"}) {
    EXPECT_THAT(
        MistakeOf(
            Resolved(Python(), "own", absl::StrCat("evaluation: {lengths: 4, ", analysis, "}"))),
        HasSubstr(absl::StrCat("evaluation.", analysis.substr(0, analysis.find(':')), ": ")));
  }
  v1::SpecificationText text;
  text.set_format(v1::SpecificationText::YAML);
  for (const std::string precision : {"bfloat16", "tf32"}) {
    text.set_text(absl::StrCat("name: right\ntasks: reverse_string\nnetworks: ", Python(),
                               "\nencodings: own\nlearning_rates: 1e-3\ntraining: {steps: 2, "
                               "lengths: 1..4, precision: ",
                               precision, "}\nevaluation: {lengths: 4}\n"));
    EXPECT_THAT(MistakeOf(Resolve(text, Limits())),
                HasSubstr(absl::StrCat("training.precision: ", precision,
                                       " is not for the network \"python\"")));
  }
}

}  // namespace
}  // namespace lengthwise::specification
