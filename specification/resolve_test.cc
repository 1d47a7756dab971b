#include "specification/resolve.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "specification/protocols.h"

namespace lengthwise::specification {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kSmall[] = R"yaml(
name: small
tasks: bucket_sort
encodings: [none, {name: sin_cos, randomized: true}]
learning_rates: [0.001, 3e-4]
weight_seeds: 7
data_seeds: [3, 4]
training: {steps: 10, lengths: {max: 20}}
evaluation: {lengths: 5..60 step 5, sequences: 20}
)yaml";

absl::StatusOr<Grid> ResolveText(std::string text,
                                 v1::SpecificationText::Format format = v1::SpecificationText::YAML,
                                 const Limits& limits = {}) {
  v1::SpecificationText message;
  message.set_format(format);
  message.set_text(std::move(text));
  return Resolve(message, limits);
}

std::vector<std::string> Ids(const Grid& grid) {
  std::vector<std::string> ids;
  for (const GridTrial& trial : grid.trials) ids.push_back(trial.id);
  return ids;
}

void ExpectSame(const Grid& a, const Grid& b) {
  MessageDifferencer differencer;
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(a.specification, b.specification)) << difference;
  ASSERT_EQ(a.trials.size(), b.trials.size());
  for (size_t i = 0; i < a.trials.size(); ++i) {
    EXPECT_EQ(a.trials[i].id, b.trials[i].id);
    EXPECT_EQ(a.trials[i].pack_key, b.trials[i].pack_key);
    EXPECT_TRUE(differencer.Compare(a.trials[i].specification, b.trials[i].specification))
        << difference;
  }
}

TEST(ResolveTest, NamesTrialsByTheirPointOfTheGridInTheGridsOrder) {
  const absl::StatusOr<Grid> grid = ResolveText(kSmall);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(Ids(*grid),
              ElementsAre("bucket_sort-encoder-none-lr0.001-weights7-data3",
                          "bucket_sort-encoder-none-lr0.001-weights7-data4",
                          "bucket_sort-encoder-none-lr0.0003-weights7-data3",
                          "bucket_sort-encoder-none-lr0.0003-weights7-data4",
                          "bucket_sort-encoder-randomized_sin_cos-lr0.001-weights7-data3",
                          "bucket_sort-encoder-randomized_sin_cos-lr0.001-weights7-data4",
                          "bucket_sort-encoder-randomized_sin_cos-lr0.0003-weights7-data3",
                          "bucket_sort-encoder-randomized_sin_cos-lr0.0003-weights7-data4"));
}

TEST(ResolveTest, TrialsOfAPackDifferOnlyInSeedsAndLearningRate) {
  const absl::StatusOr<Grid> grid = ResolveText(kSmall);
  ASSERT_TRUE(grid.ok()) << grid.status();
  for (int i = 1; i < 4; ++i) EXPECT_EQ(grid->trials[i].pack_key, grid->trials[0].pack_key);
  for (int i = 5; i < 8; ++i) EXPECT_EQ(grid->trials[i].pack_key, grid->trials[4].pack_key);
  EXPECT_NE(grid->trials[0].pack_key, grid->trials[4].pack_key);
  EXPECT_THAT(grid->trials[0].pack_key, testing::MatchesRegex("[0-9a-f]{64}"));

  const absl::StatusOr<Grid> longer = ResolveText(absl::StrCat(kSmall, "description: other\n"));
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->trials[0].pack_key, grid->trials[0].pack_key) << "not part of the trial";
}

TEST(ResolveTest, SetsEveryFieldOfATrial) {
  const absl::StatusOr<Grid> grid = ResolveText(kSmall);
  ASSERT_TRUE(grid.ok()) << grid.status();
  v1::TrialSpecification trial = grid->trials[7].specification;
  // The catalogues' defaults are theirs; here it matters that they are set.
  EXPECT_FALSE(trial.network().parameters().empty());
  EXPECT_FALSE(trial.training().optimizer().parameters().empty());
  EXPECT_EQ(trial.encoding().parameters().at("randomized").bool_value(), true);
  EXPECT_EQ(trial.encoding().parameters().at("max_position").kind_case(),
            google::protobuf::Value::kNumberValue);
  for (v1::Component* component :
       {trial.mutable_task(), trial.mutable_network(), trial.mutable_encoding(),
        trial.mutable_training()->mutable_optimizer(),
        trial.mutable_training()->mutable_schedule()}) {
    component->clear_parameters();
  }
  v1::TrialSpecification expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        task { name: "bucket_sort" label: "bucket_sort" }
        network { name: "encoder" label: "encoder" }
        encoding { name: "sin_cos" label: "randomized_sin_cos" }
        learning_rate: 3e-4
        weight_seed: 7
        data_seed: 4
        training {
          steps: 10
          batch_size: 128
          lengths { min: 1 max: 20 }
          optimizer { name: "adam" label: "adam" }
          schedule { name: "constant" label: "constant" }
          clip_norm: 1
          schedule_seed: 0
          report_every_steps: 100
          checkpoint_every_steps: 1000
          precision: "float32"
        }
        evaluation {
          lengths: [ 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60 ]
          sequences: 20
          every_steps: 0
          interval_lengths: [ 5, 15, 20, 30, 35, 45, 50, 60 ]
          interval_sequences: 5
          seen_up_to: 20
          seed: 0
        }
      )pb",
      &expected));
  MessageDifferencer differencer;
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, trial)) << difference;
}

TEST(ResolveTest, GivesTheSameGridForYamlJsonAndTextProto) {
  const absl::StatusOr<Grid> yaml = ResolveText(kSmall);
  const absl::StatusOr<Grid> json = ResolveText(
      R"json({"name": "small", "tasks": ["bucket_sort"],
              "encodings": ["none", {"name": "sin_cos", "parameters": {"randomized": true}}],
              "learning_rates": [1e-3, 0.0003], "weightSeeds": ["7"], "dataSeeds": [3, 4],
              "training": {"steps": "10", "lengths": {"max": 20}},
              "evaluation": {"lengths": ["5..60 step 5"], "sequences": 20}})json",
      v1::SpecificationText::JSON);
  const absl::StatusOr<Grid> text = ResolveText(
      R"pb(
        name: "small"
        tasks { name: "bucket_sort" }
        encodings { name: "none" }
        encodings {
          name: "sin_cos"
          parameters {
            key: "randomized"
            value { bool_value: true }
          }
        }
        learning_rates: [ 0.001, 3e-4 ]
        weight_seeds: 7
        data_seeds: [ 3, 4 ]
        training {
          steps: 10
          lengths { max: 20 }
        }
        evaluation {
          lengths: [ 60, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55 ]
          sequences: 20
        }
      )pb",
      v1::SpecificationText::TEXT_PROTO);
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  ASSERT_TRUE(json.ok()) << json.status();
  ASSERT_TRUE(text.ok()) << text.status();
  ExpectSame(*yaml, *json);
  ExpectSame(*yaml, *text);
}

TEST(ResolveTest, ResolvingTheResultAgainChangesNothing) {
  for (const std::string& yaml :
       {std::string(kSmall),
        std::string("{name: p, protocol: randomized_positional_encodings, seeds: 0..1}"),
        std::string("{name: l, tasks: bucket_sort, learning_rates: 1, training: {steps: 1}, "
                    "evaluation: {lengths: 1..9}, encodings: [{name: sin_cos, max_position: 512}, "
                    "{name: sin_cos, max_position: 1024}]}")}) {
    const absl::StatusOr<Grid> once = ResolveText(yaml);
    ASSERT_TRUE(once.ok()) << once.status();
    const absl::StatusOr<Grid> twice = Resolve(once->specification, Limits());
    ASSERT_TRUE(twice.ok()) << twice.status();
    ExpectSame(*once, *twice);
    // And as JSON, as `show --output json` prints it.
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(once->specification, &json).ok());
    const absl::StatusOr<Grid> printed = ResolveText(json, v1::SpecificationText::JSON);
    ASSERT_TRUE(printed.ok()) << printed.status();
    ExpectSame(*once, *printed);
  }
}

TEST(ResolveTest, DistinguishesComponentsByTheParametersInWhichTheyDiffer) {
  const absl::StatusOr<Grid> grid = ResolveText(R"yaml(
name: labels
tasks: bucket_sort
encodings:
  - {name: sin_cos, max_position: 512}
  - {name: sin_cos, max_position: 1024}
  - {name: sin_cos, randomized: true}
  - {name: relative, label: rel.2}
networks: [{name: encoder, blocks: 1}, {name: encoder, blocks: 2}]
learning_rates: 1e-6
training: {steps: 1}
evaluation: {lengths: 1}
)yaml");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(Ids(*grid),
              ElementsAre("bucket_sort-encoder_blocks=1-sin_cos_max_position=512-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=1-sin_cos_max_position=1024-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=1-randomized_sin_cos-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=1-rel.2-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=2-sin_cos_max_position=512-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=2-sin_cos_max_position=1024-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=2-randomized_sin_cos-lr1e-06-seed0",
                          "bucket_sort-encoder_blocks=2-rel.2-lr1e-06-seed0"));
}

TEST(ResolveTest, TakesDefaultsFromTheProtocolAndOverridesThem) {
  const absl::StatusOr<Grid> grid = ResolveText(R"yaml(
name: paper
protocol: randomized_positional_encodings
tasks: reverse_string
encodings: {name: relative, randomized: true}
seeds: 0..2
training: {steps: 1000, lengths: {min: 5}}
)yaml");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(grid->trials, SizeIs(3 * 3));  // the paper's three learning rates, three seeds
  const v1::TrialSpecification& trial = grid->trials[0].specification;
  EXPECT_EQ(trial.learning_rate(), 1e-4);
  EXPECT_EQ(trial.training().steps(), 1000);
  EXPECT_EQ(trial.training().batch_size(), 128);
  EXPECT_EQ(trial.training().lengths().min(), 5);
  EXPECT_EQ(trial.training().lengths().max(), 40);
  EXPECT_EQ(trial.evaluation().lengths_size(), 500);
  EXPECT_EQ(trial.evaluation().seen_up_to(), 40);
  EXPECT_EQ(trial.network().parameters().at("blocks").number_value(), 5);
  EXPECT_EQ(trial.encoding().parameters().at("max_position").number_value(), 2048);
}

TEST(ResolveTest, EveryProtocolResolvesByItsNameAlone) {
  for (const ProtocolEntry* protocol : ProtocolEntries()) {
    const absl::StatusOr<Grid> grid =
        ResolveText(absl::StrCat("{name: x, protocol: ", protocol->name, "}"));
    EXPECT_TRUE(grid.ok()) << grid.status();
  }
}

TEST(ResolveTest, TheQuickstartComparesPlainWithRandomizedPositions) {
  std::ifstream file("experiments/quickstart.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const absl::StatusOr<Grid> grid = ResolveText(text.str());
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(Ids(*grid), ElementsAre("bucket_sort-encoder-sin_cos-lr0.001-seed0",
                                      "bucket_sort-encoder-randomized_sin_cos-lr0.001-seed0"));
  EXPECT_EQ(grid->trials[0].specification.evaluation().lengths_size(), 12);
}

TEST(ResolveTest, ExpandsTheLargestGridWithDistinctIds) {
  const absl::Time start = absl::Now();
  const absl::StatusOr<Grid> grid = ResolveText(
      "{name: large, protocol: randomized_positional_encodings, tasks: [bucket_sort, even_pairs], "
      "encodings: [none, sin_cos, relative, {name: sin_cos, randomized: true}, "
      "{name: relative, randomized: true}], learning_rates: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "
      "seeds: 1..1000, evaluation: {lengths: 1..60}}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  RecordProperty("milliseconds", static_cast<int>(absl::ToInt64Milliseconds(absl::Now() - start)));
  const std::vector<std::string> ids = Ids(*grid);
  EXPECT_THAT(std::set<std::string>(ids.begin(), ids.end()), SizeIs(100'000));
}

TEST(ResolveTest, KnowsFormatsByTheFilesEnding) {
  EXPECT_EQ(*FormatOfFile("a/b.yaml"), v1::SpecificationText::YAML);
  EXPECT_EQ(*FormatOfFile("b.yml"), v1::SpecificationText::YAML);
  EXPECT_EQ(*FormatOfFile("b.json"), v1::SpecificationText::JSON);
  EXPECT_EQ(*FormatOfFile("b.textproto"), v1::SpecificationText::TEXT_PROTO);
  EXPECT_EQ(*FormatOfFile("b.txtpb"), v1::SpecificationText::TEXT_PROTO);
  EXPECT_THAT(FormatOfFile("b.txt").status().message(), HasSubstr("expected .yaml"));
}

}  // namespace
}  // namespace lengthwise::specification
