#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"
#include "tasks/puzzles.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandsTest, SamplesAreJsonLinesThatSolveToTheirTargets) {
  auto task = tasks::CreateTask("bucket_sort", {});
  ASSERT_TRUE(task.ok());
  const auto& bucket_sort = dynamic_cast<const tasks::TransductionTask&>(**task);
  ASSERT_EQ(Run({"sample", "bucket_sort", "--length", "12", "--count", "20", "--seed", "7",
                 "--output", "json"}),
            kSuccess);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 20u);
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const std::vector<int32_t> input = json["input"];
    std::vector<int32_t> target(input.size());
    ASSERT_EQ(input.size(), 12u);
    bucket_sort.Solve(input, absl::MakeSpan(target));
    EXPECT_EQ(json["target"].get<std::vector<int32_t>>(), target);
    EXPECT_EQ(json["mask"].size(), target.size());
  }
  const std::string first = out_;
  Run({"sample", "bucket_sort", "--length", "12", "--count", "20", "--seed", "7", "--output=json"});
  EXPECT_EQ(out_, first);
  Run({"sample", "bucket_sort", "--length", "12", "--count", "20", "--seed", "8", "--output=json"});
  EXPECT_NE(out_, first);
}

TEST_F(CommandsTest, SamplesTheScoredValidationPuzzles) {
  const std::vector<std::string> settings = {"--set", "training_puzzles=12",
                                             "--set", "held_out_puzzles=0",
                                             "--set", "validation_puzzles=9"};
  std::vector<std::string> arguments = {"sample", "latin_square", "--validation", "--count",
                                        "100",    "--output",     "json"};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  ASSERT_EQ(Run(arguments), kSuccess) << err_;
  const std::string printed = out_;
  catalogue::Parameters parameters;
  parameters.Set("training_puzzles", int64_t{12});
  parameters.Set("held_out_puzzles", int64_t{0});
  parameters.Set("validation_puzzles", int64_t{9});
  const auto task = tasks::CreateTask("latin_square", parameters).value();
  const auto data = static_cast<const tasks::PuzzleTask&>(*task).Data(/*seed=*/5).value();
  std::vector<int32_t> tokens;
  std::vector<int> conditions;
  for (const absl::string_view line : absl::StrSplit(printed, '\n', absl::SkipEmpty())) {
    const nlohmann::json json = nlohmann::json::parse(line.begin(), line.end());
    for (const int32_t token : json["input"]) tokens.push_back(token);
    conditions.push_back(json["condition"].get<int>() - 1);
  }
  EXPECT_EQ(tokens, data.validation.tokens) << "whatever the seed";
  EXPECT_TRUE(std::equal(conditions.begin(), conditions.end(), data.validation.conditions.begin(),
                         data.validation.conditions.end()));
  EXPECT_EQ(Run({"sample", "bucket_sort", "--validation"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--validation is for tasks with puzzles, as latin_square; "
                              "bucket_sort has none"));
}

TEST_F(CommandsTest, SamplesOfTextAreReadable) {
  ASSERT_EQ(Run({"sample", "decimal_addition", "--length", "3", "--count", "2", "--set",
                 "index_hints=false", "--set", "order=standard", "--output", "json"}),
            kSuccess);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  const nlohmann::json json = nlohmann::json::parse(lines[0]);
  const std::string prompt = json["prompt"], answer = json["answer"];
  // "0123+0456=", "0579<eos>"
  ASSERT_EQ(prompt.size(), 10u);
  EXPECT_EQ(absl::StrCat(std::stoi(prompt.substr(0, 4)) + std::stoi(prompt.substr(5, 4))),
            absl::StrCat(std::stoi(answer)));
  EXPECT_EQ(json["input"].size(), prompt.size());
  EXPECT_EQ(json["target"].size(), 5u) << answer;
  EXPECT_EQ(Run({"sample", "decimal_addition", "--length", "102"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("operands have 1 to 101 digits with index hints"));
}

TEST_F(CommandsTest, FormulasAreExplainedOnOnePage) {
  ASSERT_EQ(Run({"encodings", "formula"}), kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr("logits (string, default empty)\n"),
                          HasSubstr("functions   abs cos exp floor"), HasSubstr("where(condition"),
                          HasSubstr("Parameters (at most 16)")));
}

TEST_F(CommandsTest, FormulasAreDrawnInTheTerminalAndAsAFile) {
  const std::string path =
      File("formula.yaml",
           "name: e\n"
           "tasks: bucket_sort\n"
           "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
           "encodings:\n"
           "  - sin_cos\n"
           "  - {name: formula, label: my_bias, logits: \"-a * abs(q - k) - h\","
           " a: 2}\n"
           "learning_rates: 0.001\n"
           "training: {steps: 10, lengths: 1..3}\n"
           "evaluation: {lengths: 4}\n");
  const std::string first = "my_bias logits, head 1 of 2, -4  ░▒▓█ 0; rows q, columns k\n";
  ASSERT_EQ(Run({"encodings", "--draw", path}), kSuccess) << err_;
  EXPECT_EQ(out_, first +
                      "┌──────┐\n"
                      "│██▒▒  │\n"
                      "│▒▒██▒▒│\n"
                      "│  ▒▒██│\n"
                      "└──────┘\n");
  ASSERT_EQ(Run({"encodings", "--draw", path, "--head", "2", "--length", "2"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("my_bias logits, head 2 of 2, -3  ░▒▓█ -1;"));

  // Python draws the file. This stand-in keeps the numbers that it gets.
  const std::string python = File("python.sh", "#!/bin/sh\ncp \"$4\" \"$6\"\necho \"wrote $6\"\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  setenv("LENGTHWISE_PYTHON", python.c_str(), 1);
  const std::string svg = testing::TempDir() + "/formula.svg";
  ASSERT_EQ(Run({"encodings", "--draw", path, "-o", svg}), kSuccess) << err_;
  unsetenv("LENGTHWISE_PYTHON");
  EXPECT_EQ(out_, "wrote " + svg + "\n");
  const auto drawn = nlohmann::json::parse(std::ifstream(svg));
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_EQ(drawn[0]["title"], "my_bias logits, head 1 of 2");
  EXPECT_EQ(drawn[1]["title"], "my_bias logits, head 2 of 2");
  EXPECT_EQ(drawn[1]["columns"], 3);
  EXPECT_EQ(drawn[1]["values"].get<std::vector<double>>(),
            std::vector<double>({-1, -3, -5, -3, -1, -3, -5, -3, -1}));
  EXPECT_FALSE(std::filesystem::exists(svg + ".json.tmp"));

  EXPECT_EQ(Run({"encodings", "--draw", path, "-o", svg + ".gif"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("expected a name that ends in .svg, .png or .pdf"));
  EXPECT_EQ(Run({"encodings", "--draw", path, "--head", "3"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--head: got 3, the network has heads 1 to 2"));
  for (const std::string length : {"-1", "513"}) {
    EXPECT_EQ(Run({"encodings", "--draw", path, "--length", length}), kUsage);
    EXPECT_THAT(err_, HasSubstr("--length: got " + length + ", a picture has 1 to 512 tokens"));
  }
  EXPECT_EQ(Run({"encodings", "--draw", File("plain.yaml", kSpecification)}), kUsage);
  EXPECT_THAT(err_, HasSubstr("plain.yaml has no encoding `formula`"));
}

TEST_F(CommandsTest, DrawingIsAsLargeAsTheLongestInput) {
  // A file that states its own lengths.
  File("own_length.jsonl",
       "{\"input\": [0, 1, 2, 1, 0, 2], \"target\": [1], \"length\": 1}\n"
       "{\"input\": [0, 1, 2], \"target\": [1], \"length\": 2}\n"
       "{\"input\": [1, 0], \"target\": [0], \"length\": 3}\n");
  const auto specification = [&](const std::string& task) {
    return File("drawn.yaml",
                "name: e\ntasks: " + task +
                    "\nnetworks: {name: encoder, blocks: 1, heads: 1, d_model: 16}\n"
                    "encodings: {name: formula, label: b, logits: q - k}\nlearning_rates: 0.001\n");
  };
  ASSERT_EQ(Run({"encodings", "--draw",
                 specification("{name: examples, train: own_length.jsonl, target_length: any, "
                               "test: own_length.jsonl}\ntraining: {steps: 1}")}),
            kSuccess)
      << err_;
  EXPECT_THAT(out_, HasSubstr("\n┌────────────┐\n")) << "six symbols, of two characters each";
  ASSERT_EQ(Run({"encodings", "--draw",
                 specification("{name: latin_square, training_puzzles: 4, "
                               "held_out_puzzles: 0, validation_puzzles: 3}\n"
                               "training: {steps: 1, lengths: 16..16, examples: 4}\n"
                               "evaluation: {lengths: 1}")}),
            kSuccess)
      << err_;
  EXPECT_THAT(out_, HasSubstr("\n┌────────────────────────────────┐\n")) << "sixteen cells";
}

TEST_F(CommandsTest, SamplesOfNumbersStateTheirProbability) {
  ASSERT_EQ(Run({"sample", "cumulative_sum", "--length", "2", "--scale", "3"}), kSuccess);
  // Equation (12) with the factor it lacks, at c = 3.
  EXPECT_THAT(out_, HasSubstr("training could have drawn such a sample with a probability of at "
                              "most 0.26\n"));
  // 0.0415, rounded up as a bound.
  ASSERT_EQ(Run({"sample", "cumulative_sum", "--scale", "3"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("at most 0.042\n"));
  ASSERT_EQ(Run({"sample", "cumulative_sum", "--scale", "1e300"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("e-300\n"));
  ASSERT_EQ(Run({"sample", "cumulative_sum", "--length", "2"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("probability")));
  ASSERT_EQ(Run({"sample", "cumulative_sum", "--scale", "1000", "--output", "json"}), kSuccess);
  const nlohmann::json sample = nlohmann::json::parse(out_.substr(0, out_.find('\n')));
  EXPECT_GT(std::abs(sample["input"][0].get<double>()), 2) << sample;
  EXPECT_EQ(Run({"sample", "cumulative_sum", "--scale", "0.5"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("scales are finite and 1 or more, not 0.5"));
  EXPECT_EQ(Run({"sample", "bucket_sort", "--scale", "3"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--scale is for tasks on real numbers"));
}

// Names 1 to 20 belong to training, 21 to 40 to the evaluation at every scale.
TEST_F(CommandsTest, ScaledSamplesAreThoseOfEvaluation) {
  const auto has_unseen_names = ContainsRegex("Cat(2[1-9]|3[0-9]|40)");
  ASSERT_EQ(Run({"sample", "relational_query", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr("Cat1"), Not(has_unseen_names)));
  EXPECT_THAT(out_, ContainsRegex("\n\"[^\"\n]*, [^\"\n]*\",[^,\n]*\n")) << "commas are quoted";
  for (const std::string scale : {"1", "3"}) {
    ASSERT_EQ(Run({"sample", "relational_query", "--scale", scale, "--output", "csv"}), kSuccess);
    EXPECT_THAT(out_, AllOf(has_unseen_names, Not(HasSubstr("Cat1"))));
  }
}

TEST_F(CommandsTest, ListsAndExplainsTheCatalogue) {
  EXPECT_EQ(Run({"encodings", "--output", "json"}), kSuccess);
  const nlohmann::json all = nlohmann::json::parse(out_);
  EXPECT_GE(all.size(), 3u);
  EXPECT_EQ(Run({"encodings", "sin_cos"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("max_position (integer, default "));
}

TEST_F(CommandsTest, EtAlDoesNotEndASentence) {
  EXPECT_EQ(Run({"protocols", "--color", "never"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("decimal_addition                 Zhou et al. 2024, "));
}

TEST_F(CommandsTest, ValidateShowsDefaults) {
  const std::string path = File("code.yaml",
                                "{name: e, protocol: latin_square, compatibility: reference_code, "
                                "encodings: [rope, {name: none, causal: true, label: c_nope}]}");
  EXPECT_EQ(Run({"validate", path}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("is valid, 30 trials in 2 packs\n"
                              "network layerwise_encoder with encoding rope: "
                              "attention_biases none, attention_initial linear\n"
                              "network layerwise_encoder with encoding c_nope: "
                              "attention_biases none, attention_initial linear, "
                              "temperature 0.01\n"));
  EXPECT_EQ(Run({"validate", path, "--resolved"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\"network_overrides\": ["));
  EXPECT_THAT(out_, HasSubstr("\"batch_size\": 128"));
  const std::string resolved = out_;
  EXPECT_EQ(Run({"validate", File("resolved.json", resolved), "--resolved"}), kSuccess);
  EXPECT_EQ(out_, resolved);
}

TEST_F(CommandsTest, ValidatesWithoutAServer) {
  EXPECT_EQ(Run({"validate", File("e.yaml", kSpecification), "--server", "x"}), kUsage);
  EXPECT_EQ(Run({"validate", File("e.yaml", kSpecification)}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("is valid, 6 trials in 2 packs"));
  EXPECT_EQ(Run({"validate", File("bad.yaml", "name: e\ntasks: bucket_srt\nencodings: rotery\n")}),
            kUsage);
  EXPECT_THAT(err_, HasSubstr("bad.yaml is not valid:\n  "));
  EXPECT_THAT(err_, HasSubstr("bucket_srt"));
  EXPECT_THAT(err_, HasSubstr("rotery"));
  EXPECT_EQ(Run({"validate", "/nowhere/e.yaml"}), kUsage);
  EXPECT_EQ(err_,
            "lengthwise: cannot read /nowhere/e.yaml: No such file or directory; name a file, or - "
            "for standard input\n");
}

TEST_F(CommandsTest, ConfigShowsTheSourceOfEachSetting) {
  EXPECT_EQ(Run({"config", "--output", "json", "--token_file", "/ada.token"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("{\"setting\":\"token_file\",\"value\":\"/ada.token\",\"origin\":"
                              "\"--token_file\"}"));
  EXPECT_THAT(out_, HasSubstr("{\"setting\":\"tls_ca\",\"value\":\"\",\"origin\":\"default\"}"));
}

TEST_F(CommandsTest, ResultsNeedAnExperiment) { EXPECT_EQ(Run({"results"}), kUsage); }

}  // namespace
}  // namespace lengthwise::client
