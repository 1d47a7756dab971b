#include "specification/resolve.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "specification/catalogues.h"
#include "specification/checks.h"

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

absl::StatusOr<Grid> ResolveWithDefaults(
    std::string text, v1::SpecificationText::Format format = v1::SpecificationText::YAML,
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
    EXPECT_EQ(a.trials[i].pack->key, b.trials[i].pack->key);
    EXPECT_TRUE(differencer.Compare(a.trials[i].Specification(), b.trials[i].Specification()))
        << difference;
  }
}

TEST(ResolveTest, NamesTrialsByGridPointInOrder) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(kSmall);
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

TEST(ResolveTest, PackMembersDifferInSeedsAndLearningRate) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(kSmall);
  ASSERT_TRUE(grid.ok()) << grid.status();
  for (int i = 1; i < 4; ++i) EXPECT_EQ(grid->trials[i].pack->key, grid->trials[0].pack->key);
  for (int i = 5; i < 8; ++i) EXPECT_EQ(grid->trials[i].pack->key, grid->trials[4].pack->key);
  EXPECT_NE(grid->trials[0].pack->key, grid->trials[4].pack->key);
  EXPECT_THAT(grid->trials[0].pack->key, testing::MatchesRegex("[0-9a-f]{64}"));

  const absl::StatusOr<Grid> longer =
      ResolveWithDefaults(absl::StrCat(kSmall, "description: other\n"));
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->trials[0].pack->key, grid->trials[0].pack->key) << "not part of the trial";
}

TEST(ResolveTest, EpochsBecomeSteps) {
  // 8,000 puzzles in batches of 128: 62 full batches and one of 64 (Ito et al.).
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(
      "{name: x, tasks: even_pairs, encodings: none, learning_rates: 1e-4, evaluation: {lengths: "
      "5}, "
      "training: {epochs: 4001, examples: 8000, lengths: 16..16}}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  const v1::Training training = grid->trials[0].Specification().training();
  EXPECT_EQ(training.steps(), 4001 * 63);
  EXPECT_EQ(training.examples(), 8000);
  EXPECT_FALSE(training.has_epochs());
  // Resolving is idempotent. Adding seeds relies on it.
  const absl::StatusOr<Grid> again = Resolve(grid->specification, Limits());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trials[0].pack->key, grid->trials[0].pack->key);
}

TEST(ResolveTest, PuzzlesAreUnseenByDefault) {
  const std::string puzzles = "{name: x, protocol: latin_square, seeds: 0, encodings: none";
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(puzzles + "}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  const v1::TrialSpecification& trial = grid->trials[0].Specification();
  EXPECT_EQ(trial.training().steps(), 4001 * 63);
  EXPECT_EQ(trial.evaluation().seen_up_to(), 0);
  const absl::StatusOr<Grid> said = ResolveWithDefaults(puzzles + ", evaluation: {seen_up_to: 1}}");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->trials[0].Specification().evaluation().seen_up_to(), 1);
}

TEST(ResolveTest, LargerScalesAreUnseenInRegressions) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(
      "{name: x, protocol: positional_attention, seeds: 0, training: {lengths: 2..4}}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(Ids(*grid).front(), "cumulative_sum-positional-one_hot-lr0.0005-seed0");
  EXPECT_EQ(grid->trials.size(), 5 * 2);
  EXPECT_EQ(grid->trials[0].Specification().evaluation().seen_up_to(), 1);
  // 10,000 vectors of each length in batches of 1,000.
  EXPECT_EQ(grid->trials[0].Specification().training().steps(), 2001 * 30);
  // Evaluations draw other names than training, at scale 1 too.
  const absl::StatusOr<Grid> with_names = ResolveWithDefaults(
      "{name: x, protocol: positional_attention, seeds: 0, tasks: [sorting, relational_query]}");
  ASSERT_TRUE(with_names.ok()) << with_names.status();
  EXPECT_EQ(with_names->trials[0].Specification().evaluation().seen_up_to(), 0);
}

TEST(ResolveTest, EveryNetworkLearnsEveryTask) {
  // Combinations that neither paper runs.
  for (const std::string network : {"encoder", "layerwise_encoder"}) {
    EXPECT_TRUE(
        ResolveWithDefaults(
            absl::StrCat("{name: x, protocol: latin_square, seeds: 0, networks: ", network, "}"))
            .ok());
    EXPECT_TRUE(
        ResolveWithDefaults(absl::StrCat("{name: x, tasks: reverse_string, encodings: shaw, "
                                         "learning_rates: 1, training: {steps: 1}, evaluation: "
                                         "{lengths: 5}, networks: ",
                                         network, "}"))
            .ok());
  }
}

TEST(ResolveTest, EpochsReplaceTheProtocolsSteps) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(
      "{name: x, protocol: randomized_positional_encodings, seeds: 0, "
      "training: {epochs: 2, examples: 400, batch_size: 5}}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->trials[0].Specification().training().steps(), 2 * 40 * 2);
}

TEST(ResolveTest, SetsEveryFieldOfATrial) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(kSmall);
  ASSERT_TRUE(grid.ok()) << grid.status();
  v1::TrialSpecification trial = grid->trials[7].Specification();
  // The catalogues' tests check the values. Here only their presence matters.
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
          report_every_steps: 1
          precision: "float32"
          stop_after_seconds: 0
          stop_at_accuracy: 0
          examples: 0
          checkpoint_every_seconds: 600
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
        keep: "weights"
      )pb",
      &expected));
  MessageDifferencer differencer;
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, trial)) << difference;
}

TEST(ResolveTest, ShortTrainingHasAHundredPointsOfLoss) {
  for (const auto& [steps, every] : std::vector<std::pair<std::string, int64_t>>{
           {"50", 1}, {"2000", 20}, {"9999", 99}, {"1000000", 100}}) {
    const absl::StatusOr<Grid> grid =
        ResolveWithDefaults(absl::StrReplaceAll(kSmall, {{"steps: 10", "steps: " + steps}}));
    ASSERT_TRUE(grid.ok()) << grid.status();
    EXPECT_EQ(grid->specification.training().report_every_steps(), every) << steps;
  }
}

TEST(ResolveTest, KeepIsInEveryTrialButNotInThePack) {
  const absl::StatusOr<Grid> usual = ResolveWithDefaults(kSmall);
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_EQ(usual->specification.keep(), "weights");
  for (const std::string keep : {"weights", "all", "nothing"}) {
    const absl::StatusOr<Grid> grid =
        ResolveWithDefaults(std::string(kSmall) + "\nkeep: " + keep + "\n");
    ASSERT_TRUE(grid.ok()) << grid.status();
    for (size_t i = 0; i < grid->trials.size(); ++i) {
      EXPECT_EQ(grid->trials[i].pack->specification.keep(), keep);
      EXPECT_EQ(grid->trials[i].pack->key, usual->trials[i].pack->key);
    }
  }
}

TEST(ResolveTest, RetentionIsInNoTrial) {
  const absl::StatusOr<Grid> usual = ResolveWithDefaults(kSmall);
  for (const std::string retention : {"90d", "1.5d", "12h", "forever"}) {
    const absl::StatusOr<Grid> grid =
        ResolveWithDefaults(absl::StrCat(kSmall, "\nretention: ", retention, "\n"));
    ASSERT_TRUE(grid.ok()) << grid.status();
    EXPECT_EQ(grid->specification.retention(), retention);
    for (size_t i = 0; i < grid->trials.size(); ++i) {
      EXPECT_TRUE(MessageDifferencer::Equals(grid->trials[i].pack->specification,
                                             usual->trials[i].pack->specification));
    }
  }
}

TEST(ResolveTest, GivesTheSameGridForYamlJsonAndTextProto) {
  const absl::StatusOr<Grid> yaml = ResolveWithDefaults(kSmall);
  const absl::StatusOr<Grid> json = ResolveWithDefaults(
      R"json({"name": "small", "tasks": ["bucket_sort"],
              "encodings": ["none", {"name": "sin_cos", "parameters": {"randomized": true}}],
              "learning_rates": [1e-3, 0.0003], "weightSeeds": ["7"], "dataSeeds": [3, 4],
              "training": {"steps": "10", "lengths": {"max": 20}},
              "evaluation": {"lengths": ["5..60 step 5"], "sequences": 20}})json",
      v1::SpecificationText::JSON);
  const absl::StatusOr<Grid> text = ResolveWithDefaults(
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

// Trials keep their fingerprints: one from before there was a choice has no trace of it.
TEST(ResolveTest, ChoicesOfPositionsAreNamedOnlyWhereMade) {
  const auto encoding = [](const std::string& given) {
    const absl::StatusOr<Grid> grid = ResolveWithDefaults(absl::StrCat(
        "{name: p, tasks: bucket_sort, learning_rates: 1, training: {steps: 1}, evaluation: "
        "{lengths: 1..9}, encodings: [{name: rope",
        given, "}]}"));
    EXPECT_TRUE(grid.ok()) << grid.status();
    return grid->trials[0].pack->specification.encoding();
  };
  const v1::Component counted = encoding(""), subset = encoding(", positions: subset"),
                      shift = encoding(", positions: shift, random_offset: 7");
  std::vector<std::string> names;
  for (const auto& [name, value] : counted.parameters()) names.push_back(name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("draws", "max_position", "randomized",
                                            "randomized_at_evaluation", "sorted", "turned_by"));
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(subset, encoding(", randomized: true")));
  EXPECT_TRUE(subset.parameters().at("randomized").bool_value());
  EXPECT_FALSE(subset.parameters().contains("positions"));
  EXPECT_EQ(subset.label(), "randomized_rope");
  EXPECT_EQ(shift.parameters().at("positions").string_value(), "shift");
  EXPECT_EQ(shift.parameters().at("random_offset").number_value(), 7);
  EXPECT_EQ(shift.label(), "shift_rope");
}

TEST(ResolveTest, ResolvingIsIdempotent) {
  for (const std::string& yaml :
       {std::string(kSmall),
        std::string("{name: p, protocol: randomized_positional_encodings, seeds: 0..1}"),
        std::string("{name: l, tasks: bucket_sort, learning_rates: 1, training: {steps: 1}, "
                    "evaluation: {lengths: 1..9}, encodings: [{name: sin_cos, max_position: 512}, "
                    "{name: sin_cos, max_position: 1024}]}")}) {
    const absl::StatusOr<Grid> once = ResolveWithDefaults(yaml);
    ASSERT_TRUE(once.ok()) << once.status();
    const absl::StatusOr<Grid> twice = Resolve(once->specification, Limits());
    ASSERT_TRUE(twice.ok()) << twice.status();
    ExpectSame(*once, *twice);
    // Also as JSON, which `show --output json` prints.
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(once->specification, &json).ok());
    const absl::StatusOr<Grid> printed = ResolveWithDefaults(json, v1::SpecificationText::JSON);
    ASSERT_TRUE(printed.ok()) << printed.status();
    ExpectSame(*once, *printed);
  }
}

TEST(ResolveTest, LabelsNameDifferingParameters) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(R"yaml(
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

TEST(ResolveTest, RecurrentNetworksTrainWithoutTheEncodingsOfOthers) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(R"yaml(
name: baselines
tasks: bucket_sort
networks: [encoder, rnn, lstm, stack_rnn, nondeterministic_stack_rnn, tape_rnn]
encodings: [none, rope]
learning_rates: 1e-3
training: {steps: 1}
evaluation: {lengths: 1}
)yaml");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(
      Ids(*grid),
      ElementsAre("bucket_sort-encoder-none-lr0.001-seed0",
                  "bucket_sort-encoder-rope-lr0.001-seed0", "bucket_sort-rnn-none-lr0.001-seed0",
                  "bucket_sort-lstm-none-lr0.001-seed0", "bucket_sort-stack_rnn-none-lr0.001-seed0",
                  "bucket_sort-nondeterministic_stack_rnn-none-lr0.001-seed0",
                  "bucket_sort-tape_rnn-none-lr0.001-seed0"));
}

TEST(ResolveTest, TakesDefaultsFromTheProtocolAndOverridesThem) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(R"yaml(
name: paper
protocol: randomized_positional_encodings
tasks: reverse_string
encodings: {name: relative, randomized: true}
seeds: 0..2
training: {steps: 1000, lengths: {min: 5}}
)yaml");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(grid->trials, SizeIs(3 * 3));  // the paper's three learning rates, three seeds
  const v1::TrialSpecification trial = grid->trials[0].Specification();
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

TEST(ResolveTest, ProtocolsChooseAsTheirPapers) {
  const auto rule = [](const std::string& more) {
    const auto grid =
        ResolveWithDefaults("name: x\nprotocol: randomized_positional_encodings\n" + more);
    EXPECT_TRUE(grid.ok()) << grid.status();
    return grid.ok() ? grid->specification.evaluation().select() : "";
  };
  EXPECT_EQ(rule(""), "unseen");
  EXPECT_EQ(rule("evaluation: {select: seen}\n"), "seen");
  const auto own = ResolveWithDefaults(kSmall);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_FALSE(own->specification.evaluation().has_select());
}

TEST(ResolveTest, WarnsWhereNothingWillChoose) {
  const auto warning = [](const std::string& evaluation, const std::string& rates) {
    const absl::StatusOr<Grid> grid = ResolveWithDefaults(absl::StrReplaceAll(
        kSmall,
        {{"lengths: 5..60 step 5", evaluation}, {"[0.001, 3e-4]", rates}, {"[3, 4]", "3"}}));
    EXPECT_TRUE(grid.ok()) << grid.status();
    return grid.ok() ? ChoiceWarning(grid->specification) : "";
  };
  const std::string two = "[0.001, 3e-4]";
  EXPECT_THAT(warning("lengths: [40, 60]", two), HasSubstr("give evaluation.validation or"));
  EXPECT_EQ(warning("lengths: [40, 60]", "0.001"), "") << "one trial";
  EXPECT_EQ(warning("lengths: [20, 60]", two), "");
  EXPECT_EQ(warning("lengths: [40, 60], seen_up_to: 40", two), "");
  EXPECT_EQ(warning("lengths: [40, 60], select: unseen", two), "");
  EXPECT_EQ(warning("lengths: [40, 60], validation: {lengths: 1..20}", two), "");
}

TEST(ResolveTest, EveryProtocolResolvesByName) {
  for (const ProtocolEntry* protocol : ProtocolEntries()) {
    const absl::StatusOr<Grid> grid =
        ResolveWithDefaults(absl::StrCat("{name: x, protocol: ", protocol->name, "}"));
    EXPECT_TRUE(grid.ok()) << grid.status();
  }
}

absl::StatusOr<Grid> ResolveFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return ResolveWithDefaults(text.str());
}

TEST(ResolveTest, QuickstartComparesRandomizedPositions) {
  const absl::StatusOr<Grid> grid = ResolveFile("experiments/quickstart.yaml");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT(Ids(*grid), ElementsAre("bucket_sort-encoder-sin_cos-lr0.001-seed0",
                                      "bucket_sort-encoder-randomized_sin_cos-lr0.001-seed0"));
  EXPECT_EQ(grid->trials[0].pack->specification.evaluation().lengths_size(), 12);
}

// Specifications stored before text tasks existed have no packing and must keep their meaning.
TEST(ResolveTest, OnlyTextHasAPacking) {
  const auto packing_of = [](const std::string& packing) {
    const auto text = ResolveWithDefaults(R"yaml(name: t
tasks: decimal_addition
networks: causal_decoder
encodings: none
learning_rates: 0.001
evaluation: {lengths: 1..3}
training: {steps: 10, packing: {)yaml" + packing +
                                          "}}\n");
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? text->trials[0].Specification().training().packing() : v1::Packing();
  };
  const v1::Packing packing = packing_of("answers_only: true");
  EXPECT_EQ(packing.tokens(), 2048);
  EXPECT_TRUE(packing.answers_only());
  EXPECT_TRUE(packing.has_attend_across());
  EXPECT_FALSE(packing.attend_across());
  EXPECT_TRUE(packing.has_reset_positions());
  EXPECT_TRUE(packing.reset_positions());
  const v1::Packing across = packing_of("attend_across: true");
  EXPECT_TRUE(across.attend_across());
  EXPECT_FALSE(across.reset_positions());
  const auto other = ResolveWithDefaults(R"yaml(name: t
tasks: parity_check
encodings: none
learning_rates: 0.001
training: {steps: 10}
evaluation: {lengths: 1..3}
)yaml");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->trials[0].Specification().training().has_packing());
}

// Lists every file under experiments/ with its number of trials, from the paper or, for the quick
// ones, from the file's comment. A new file needs a line here.
TEST(ResolveTest, EveryExperimentHasItsStatedTrials) {
  const std::map<std::string, size_t> trials = {
      {"chomsky_hierarchy/quick/table.yaml", 3 * (4 + 2) * 3},
      {"chomsky_hierarchy/table.yaml", 15 * (4 + 5) * 10},
      {"decimal_addition/figure1.yaml", 10},
      {"decimal_addition/figure10.yaml", 10},
      {"decimal_addition/figure11.yaml", 3 * 5},
      {"decimal_addition/figure12_to_10.yaml", 2 * 4 * 5},
      {"decimal_addition/figure12_to_20.yaml", 2 * 4 * 5},
      {"decimal_addition/figure12_to_30.yaml", 2 * 4 * 5},
      {"decimal_addition/figure12_to_40.yaml", 2 * 4 * 5},
      {"decimal_addition/figure3.yaml", 4 * 10},
      {"decimal_addition/figure4.yaml", 4 * 10},
      {"decimal_addition/figure5.yaml", 4 * 10},
      {"decimal_addition/figure7.yaml", 4 * 10},
      {"decimal_addition/figure8.yaml", 4 * 10},
      {"decimal_addition/figure_f15.yaml", 2 * 5},
      {"decimal_addition/figure_f16_to_10.yaml", 2 * 5},
      {"decimal_addition/figure_f16_to_20.yaml", 2 * 5},
      {"decimal_addition/figure_f16_to_30.yaml", 2 * 5},
      {"decimal_addition/figure_f17.yaml", 3 * 5},
      {"decimal_addition/figure_f18.yaml", 3 * 5},
      {"decimal_addition/figure_f8.yaml", 4 * 5},
      {"decimal_addition/figure_g3.yaml", 4 * 10},
      {"decimal_addition/statement_5m.yaml", 5},
      {"decimal_addition/statement_paired.yaml", 4 * 5},
      {"decimal_addition/statement_prefix_lm.yaml", 4 * 5},
      {"decimal_addition/quick/formats.yaml", 2 * 2 * 2 * 2},
      {"latin_square/analyses.yaml", 27 * 15},
      {"latin_square/learned_distances_on_strings.yaml", 15 * 4 * 3},
      {"latin_square/quick/table2.yaml", 9},
      {"latin_square/small_tables_on_strings.yaml", 2 * 6 * 3},
      {"latin_square/table1.yaml", 8 * 15},
      {"latin_square/table2.yaml", 20 * 15},
      {"latin_square/table1_released_code.yaml", 8 * 15},
      {"latin_square/table4_adam.yaml", 4 * 15},
      {"latin_square/table4_sgd.yaml", 4 * 15},
      {"latin_square/table5.yaml", 20 * 15},
      {"latin_square/table6.yaml", 8 * 15},
      {"latin_square/table6_released_code.yaml", 8 * 15},
      {"positional_attention/figure2.yaml", 5 * 2 * 10},
      {"positional_attention/figure24_positional.yaml", 3 * 5},
      {"positional_attention/figure24_standard.yaml", 3 * 5},
      {"positional_attention/figure25_positional.yaml", 3 * 5},
      {"positional_attention/figure25_standard.yaml", 3 * 5},
      {"positional_attention/figure2_released_code.yaml", 5 * 2 * 10},
      {"positional_attention/figure3.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_5000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_10000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_15000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_20000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_25000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_30000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_35000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_40000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_45000.yaml", 5 * 2 * 10},
      {"positional_attention/figure3_50000.yaml", 5 * 2 * 10},
      {"positional_attention/figure4_length16.yaml", 5 * 2 * 10},
      {"positional_attention/figure4_length2.yaml", 5 * 2 * 10},
      {"positional_attention/figure4_length32.yaml", 5 * 2 * 10},
      {"positional_attention/figure4_length4.yaml", 5 * 2 * 10},
      {"positional_attention/figure4_length8.yaml", 5 * 2 * 10},
      {"positional_attention/figure5.yaml", 5 * 2 * 10},
      {"positional_attention/figure9.yaml", 5 * 3 * 10},
      {"positional_attention/figures10_11.yaml", 5 * 2 * 2 * 10},
      {"positional_attention/figures22_23_positional.yaml", 3 * 5},
      {"positional_attention/figures22_23_standard.yaml", 3 * 5},
      {"positional_attention/figures30_31.yaml", 1},
      {"positional_attention/figures32_33_none.yaml", 2 * 2 * 10},
      {"positional_attention/figures32_33_rope.yaml", 2 * 10},
      {"positional_attention/figures32_33_vectors.yaml", 2 * 4 * 10},
      {"positional_attention/figures7_8.yaml", 2 * 8 * 10},
      {"positional_attention/quick/figure5.yaml", 5 * 2 * 2},
      {"positional_attention/randomized_positions.yaml", 5 * 4 * 3},
      {"positional_attention/table1.yaml", 2 * 4 * 10},
      {"positions/abacus.yaml", 4 * 3},
      {"positions/coupling.yaml", 3 * 8},
      {"positions/quick/abacus.yaml", 4 * 3},
      {"positions/quick/choices.yaml", 4 * 18 * 3},
      {"positions/quick/coupling.yaml", 4 * 3},
      {"quickstart.yaml", 2},
      {"randomized_positional_encodings/figure2_long.yaml", 3 * 10},
      {"randomized_positional_encodings/figure2_randomized.yaml", 3 * 10},
      {"randomized_positional_encodings/figure3.yaml", 2 * 4 * 3 * 10},
      {"randomized_positional_encodings/figure4.yaml", 15 * 11},
      {"randomized_positional_encodings/figure5.yaml", 2 * 3 * 10},
      {"randomized_positional_encodings/figure6.yaml", 2 * 3 * 10},
      {"randomized_positional_encodings/quick/figure2_long.yaml", 2},
      {"randomized_positional_encodings/quick/figure2_randomized.yaml", 2},
      {"randomized_positional_encodings/quick/figure3.yaml", 2 * 4},
      {"randomized_positional_encodings/quick/figure4.yaml", 11},
      {"randomized_positional_encodings/quick/figure5.yaml", 2},
      {"randomized_positional_encodings/quick/table1.yaml", 4 * 5},
      {"randomized_positional_encodings/quick/table2.yaml", 11},
      {"randomized_positional_encodings/quick/table3.yaml", 2 * 2},
      {"randomized_positional_encodings/quick/table4.yaml", 4 * 3},
      {"randomized_positional_encodings/quick/table5.yaml", 2},
      {"randomized_positional_encodings/reference_code.yaml", 6 * 10},
      {"randomized_positional_encodings/table1.yaml", 15 * 11 * 3 * 10},
      {"randomized_positional_encodings/table1_alibi_offsets.yaml", 15 * 3 * 10},
      {"randomized_positional_encodings/table2.yaml", 15 * 11 * 3},
      {"randomized_positional_encodings/table3.yaml", 15 * 2 * 3 * 10},
      {"randomized_positional_encodings/table4.yaml", 15 * 11 * 3 * 10},
      {"randomized_positional_encodings/table5.yaml", 15 * 3 * 10},
      {"reproduced/precisions.yaml", 10},
      {"reproduced/table1_gcn.yaml", 2 * 2 * 10},
      {"reproduced/table1_short.yaml", 15 * 4},
      {"reproduced/ten_seeds.yaml", 4 * 4 * 10},
      {"state_tracking/quick/parity.yaml", 4 * 3},
  };
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("experiments")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().lexically_relative("experiments").string();
    found.insert(name);
    ASSERT_TRUE(trials.count(name) > 0) << name;
    const absl::StatusOr<Grid> grid = ResolveFile(entry.path().string());
    ASSERT_TRUE(grid.ok()) << name << ": " << grid.status();
    EXPECT_THAT(grid->trials, SizeIs(trials.at(name))) << name;
  }
  EXPECT_EQ(found.size(), trials.size());
}

TEST(ResolveTest, ProtocolHasThePapersTasksAndEncodings) {
  const absl::StatusOr<Grid> grid =
      ResolveWithDefaults("{name: x, protocol: randomized_positional_encodings, seeds: 0}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  std::vector<std::string> encodings;
  for (const v1::Component& encoding : grid->specification.encodings()) {
    encodings.push_back(encoding.label());
  }
  EXPECT_THAT(encodings, ElementsAre("none", "sin_cos", "relative", "alibi", "rope", "learned",
                                     "randomized_sin_cos", "randomized_relative",
                                     "randomized_alibi", "randomized_rope", "randomized_learned"));
  EXPECT_THAT(grid->specification.tasks(), SizeIs(15));
}

// Differences between the paper's code and its text, except random number generators: a draw in
// each block, drawn distances, the half step of ALiBi, dropout (also at evaluation), and the
// embedding's extra column.
TEST(ResolveTest, CompatibilityFollowsTheReferenceCode) {
  const std::string text =
      "{name: x, protocol: randomized_positional_encodings, tasks: bucket_sort, seeds: 0, "
      "learning_rates: 1e-3, encodings: [alibi, rope, relative, {name: alibi, randomized: true}, "
      "{name: relative, randomized: true, draws: shared}, {name: rope, randomized: true}]";
  const absl::StatusOr<Grid> paper = ResolveWithDefaults(text + "}");
  const absl::StatusOr<Grid> code = ResolveWithDefaults(text + ", compatibility: reference_code}");
  ASSERT_TRUE(paper.ok()) << paper.status();
  ASSERT_TRUE(code.ok()) << code.status();
  const auto parameter = [](const v1::Component& component, const std::string& name) {
    const google::protobuf::Value& value = component.parameters().at(name);
    return value.kind_case() == google::protobuf::Value::kBoolValue
               ? absl::StrCat(value.bool_value() ? "true" : "false")
           : value.kind_case() == google::protobuf::Value::kNumberValue
               ? absl::StrCat(value.number_value())
               : value.string_value();
  };
  const v1::Component& network = code->specification.networks(0);
  EXPECT_EQ(parameter(network, "dropout"), "0.1");
  EXPECT_EQ(parameter(network, "dropout_at_evaluation"), "true");
  EXPECT_EQ(parameter(network, "extra_input_columns"), "1");
  EXPECT_EQ(parameter(network, "blocks"), "5");
  const auto& encodings = code->specification.encodings();
  EXPECT_EQ(parameter(encodings[0], "half_step"), "true");
  EXPECT_EQ(parameter(encodings[0], "draws"), "shared");
  EXPECT_EQ(parameter(encodings[1], "draws"), "shared");
  EXPECT_EQ(parameter(encodings[2], "clamped_table"), "false");
  EXPECT_EQ(parameter(encodings[3], "half_step"), "true");
  EXPECT_EQ(parameter(encodings[3], "draws"), "per_block");
  EXPECT_EQ(parameter(encodings[3], "distances"), "offsets");
  EXPECT_EQ(parameter(encodings[4], "clamped_table"), "true");
  EXPECT_EQ(parameter(encodings[4], "draws"), "shared") << "the user's value stays";
  EXPECT_EQ(parameter(encodings[5], "draws"), "per_block");

  EXPECT_EQ(paper->specification.compatibility(), "paper");
  EXPECT_EQ(parameter(paper->specification.networks(0), "dropout"), "0");
  EXPECT_EQ(parameter(paper->specification.encodings(0), "half_step"), "false");
  EXPECT_EQ(parameter(paper->specification.encodings(5), "draws"), "shared");
}

std::string Shown(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case google::protobuf::Value::kNumberValue:
      return absl::StrCat(value.number_value());
    default:
      return value.string_value();
  }
}

// The parameters in which two components differ, with the second one's values: "temperature=0.01".
std::vector<std::string> Changed(const v1::Component& from, const v1::Component& to) {
  std::vector<std::string> changed;
  for (const auto& [name, value] : from.parameters()) {
    const google::protobuf::Value& other = to.parameters().at(name);
    if (Shown(value) != Shown(other)) changed.push_back(absl::StrCat(name, "=", Shown(other)));
  }
  std::sort(changed.begin(), changed.end());
  return changed;
}

// By encoding: the differences between the first trial of `base` and that of `changed`.
std::map<std::string, std::vector<std::string>> ChangedByEncoding(const Grid& base,
                                                                  const Grid& changed) {
  std::map<std::string, std::vector<std::string>> found;
  EXPECT_EQ(base.trials.size(), changed.trials.size());
  for (size_t i = 0; i < base.trials.size(); ++i) {
    const v1::TrialSpecification &one = base.trials[i].pack->specification,
                                 &other = changed.trials[i].pack->specification;
    EXPECT_EQ(base.trials[i].id, changed.trials[i].id);
    std::vector<std::string> parameters = Changed(one.network(), other.network());
    for (std::string& parameter : Changed(one.encoding(), other.encoding())) {
      parameters.push_back("encoding " + parameter);
    }
    found[one.encoding().label()] = parameters;
  }
  return found;
}

// The settings of Ito et al.'s code. tests/golden/latin_square_models_test.cc compares them with
// its results.
TEST(ResolveTest, LatinSquareCodeDependsOnTheEncoding) {
  const std::string folder = "experiments/latin_square/";
  const absl::StatusOr<Grid> text = ResolveFile(folder + "table1.yaml");
  const absl::StatusOr<Grid> code = ResolveFile(folder + "table1_released_code.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_TRUE(code.ok()) << code.status();
  const std::map<std::string, std::vector<std::string>> expected = {
      {"2d_fixed", {"encoding_dropout=0.1"}},
      {"learn_0.2", {}},
      {"relative",
       {"attention_biases=inputs", "attention_initial=linear", "output_projection=false",
        "encoding causal=true"}},
      {"random", {}},
      {"rope", {"attention_biases=none", "attention_initial=linear"}},
      {"1d_fixed", {"encoding_dropout=0.1"}},
      {"nope", {}},
      {"c_nope", {"attention_biases=none", "attention_initial=linear", "temperature=0.01"}},
  };
  EXPECT_EQ(ChangedByEncoding(*text, *code), expected);
  EXPECT_THAT(code->specification.network_overrides(), SizeIs(5));
}

TEST(ResolveTest, OverridesResolveIdempotently) {
  const absl::StatusOr<Grid> once =
      ResolveFile("experiments/latin_square/table1_released_code.yaml");
  ASSERT_TRUE(once.ok()) << once.status();
  const absl::StatusOr<Grid> again = Resolve(once->specification, {});
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSame(*once, *again);
}

TEST(ResolveTest, UserValuesOverrideReferenceCode) {
  const std::string text =
      "{name: x, protocol: latin_square, encodings: [rope, {name: none, causal: true}], seeds: 0, "
      "networks: {name: layerwise_encoder, temperature: 0.5}";
  const absl::StatusOr<Grid> paper = ResolveWithDefaults(text + "}");
  const absl::StatusOr<Grid> code = ResolveWithDefaults(
      text +
      ", compatibility: reference_code, network_overrides: {encoding: rope, network: "
      "{name: layerwise_encoder, attention_biases: inputs}}}");
  ASSERT_TRUE(paper.ok()) << paper.status();
  ASSERT_TRUE(code.ok()) << code.status();
  const std::map<std::string, std::vector<std::string>> expected = {
      {"rope", {"attention_biases=inputs", "attention_initial=linear"}},
      {"none", {"attention_biases=none", "attention_initial=linear"}}};
  EXPECT_EQ(ChangedByEncoding(*paper, *code), expected);
}

TEST(ResolveTest, PositionalReferenceCodeDependsOnLengths) {
  const std::string text =
      "{name: x, protocol: positional_attention, compatibility: reference_code, seeds: 0";
  const absl::StatusOr<Grid> one_length = ResolveWithDefaults(text + "}");
  const absl::StatusOr<Grid> lengths =
      ResolveWithDefaults(text + ", training: {lengths: 1..8, examples: 500000}}");
  const absl::StatusOr<Grid> own = ResolveWithDefaults(
      text + ", learning_rates: 1e-3, training: {lengths: 1..8, examples: 500000, batch_size: 7}}");
  ASSERT_TRUE(one_length.ok()) << one_length.status();
  ASSERT_TRUE(lengths.ok()) << lengths.status();
  ASSERT_TRUE(own.ok()) << own.status();
  const auto values = [](const Grid& grid) {
    const v1::ExperimentSpecification& resolved = grid.specification;
    return std::make_tuple(resolved.learning_rates(0), resolved.training().batch_size(),
                           resolved.evaluation().sequences());
  };
  EXPECT_EQ(values(*one_length), std::make_tuple(5e-4, 1000, 1000));
  EXPECT_EQ(values(*lengths), std::make_tuple(1e-4, 2048, 2000));
  EXPECT_EQ(values(*own), std::make_tuple(1e-3, 7, 2000));
}

TEST(ResolveTest, PositionalCodeTurnsByHeads) {
  const absl::StatusOr<Grid> code = ResolveWithDefaults(
      "{name: x, protocol: positional_attention, compatibility: reference_code, seeds: 0, "
      "encodings: rope, networks: {name: positional_attention, attention_by: input}}");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Shown(code->specification.encodings(0).parameters().at("turned_by")), "heads");
}

constexpr char kFormulas[] = R"yaml(
name: formulas
tasks: bucket_sort
networks: {name: encoder, heads: 4, d_model: 32, blocks: 3}
encodings:
  - name: formula
    label: my_bias
    logits: "-softplus(a) * log1p(softplus(b) * abs(q - k)) + t[h] + s"
    parameters:
      a: {per: head, initial: 1.0}
      b: {per: layer, initial: [0.1, 0.2, 0.3]}
      t: [0, 0.5, 1]
      s: {initial: 8, fixed: true}
  - {name: formula, angle: "g * p / (i + 1)", g: 2, randomized: true}
  - {name: formula, embedding: "u[p] * c", u: {size: 32, stddev: 0.1}}
  - {name: formula, embedding: "sin(p * 10000^(-2 * c / d)) + cos(p) + sin(p / 2) + sin(c)"}
learning_rates: 0.001
training: {steps: 10}
evaluation: {lengths: 10}
)yaml";

TEST(ResolveTest, FormulaKeepsItsParametersAsText) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(kFormulas);
  ASSERT_TRUE(grid.ok()) << grid.status();
  const auto& encodings = grid->specification.encodings();
  EXPECT_EQ(encodings[0].parameters().at("parameters").string_value(),
            "a per head = 1; b per layer = 0.1, 0.2, 0.3; s fixed = 8; t[3] = 0, 0.5, 1");
  EXPECT_EQ(encodings[1].parameters().at("parameters").string_value(), "g = 2");
  EXPECT_EQ(encodings[2].parameters().at("parameters").string_value(), "u[32] ~ 0.1");
  EXPECT_EQ(encodings[3].parameters().at("parameters").string_value(), "");
  EXPECT_FALSE(encodings[0].parameters().contains("a"));
}

TEST(ResolveTest, LabelsDistinguishFormulas) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(kFormulas);
  ASSERT_TRUE(grid.ok()) << grid.status();
  std::set<std::string> labels, packs;
  for (const GridTrial& trial : grid->trials) {
    labels.insert(trial.pack->specification.encoding().label());
    packs.insert(trial.pack->key);
  }
  EXPECT_THAT(labels, testing::UnorderedElementsAre("my_bias", "randomized_formula", "formula_1",
                                                    "formula_2"));
  EXPECT_THAT(packs, SizeIs(4));
}

TEST(ResolveTest, ResolvedFormulaIsASpecification) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(kFormulas);
  ASSERT_TRUE(grid.ok()) << grid.status();
  const absl::StatusOr<Grid> again = Resolve(grid->specification, Limits());
  ASSERT_TRUE(again.ok()) << again.status();
  for (size_t i = 0; i < grid->trials.size(); ++i) {
    EXPECT_EQ(again->trials[i].pack->key, grid->trials[i].pack->key);
  }
}

TEST(ResolveTest, ProjectionHasItsDefaults) {
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(
      std::string(kSmall).replace(std::string(kSmall).find("sequences: 20}"), 14,
                                  "sequences: 20, projection: {lengths: [40, 20]}}"));
  ASSERT_TRUE(grid.ok()) << grid.status();
  const v1::ProjectionSettings& projection = grid->specification.evaluation().projection();
  EXPECT_EQ(projection.fitted_length(), 20);
  EXPECT_EQ(projection.sequences(), 30);
  EXPECT_THAT(projection.lengths(), ElementsAre(40, 20));
  EXPECT_FALSE(ResolveWithDefaults(kSmall)->specification.evaluation().has_projection());
}

TEST(ResolveTest, ProjectionIsFittedOnAConditionOrAScale) {
  for (const std::string lines : {"protocol: latin_square, encodings: none",
                                  "protocol: positional_attention, tasks: sorting"}) {
    const absl::StatusOr<Grid> grid = ResolveWithDefaults(
        absl::StrCat("{name: x, seeds: 0, ", lines, ", evaluation: {projection: {}}}"));
    ASSERT_TRUE(grid.ok()) << grid.status();
    const v1::ProjectionSettings& projection = grid->specification.evaluation().projection();
    EXPECT_EQ(projection.fitted_length(), 1) << lines;
    EXPECT_THAT(projection.lengths(), ElementsAre(1)) << lines;
  }
}

TEST(ResolveTest, OnlyRequestedAnalysesHaveDefaults) {
  const auto evaluation = [](const std::string& fields) {
    const absl::StatusOr<Grid> grid = ResolveWithDefaults(std::string(kSmall).replace(
        std::string(kSmall).find("sequences: 20}"), 14, "sequences: 20" + fields + "}"));
    EXPECT_TRUE(grid.ok()) << grid.status();
    return grid->trials[0].pack->specification.evaluation();
  };
  EXPECT_FALSE(evaluation("").has_attention_sequences());
  EXPECT_FALSE(evaluation("").has_sequence_scores());
  EXPECT_EQ(evaluation(", attention_lengths: 4").attention_sequences(), 1);
  const v1::Evaluation all = evaluation(
      ", attention_lengths: 4, attention_sequences: 36, sequence_scores: true, "
      "embedding_noise: [0.02, 0.1]");
  EXPECT_EQ(all.attention_sequences(), 36);
  EXPECT_TRUE(all.sequence_scores());
  EXPECT_THAT(all.embedding_noise(), ElementsAre(0.02, 0.1));
}

TEST(ResolveTest, ExpandsTheLargestGridWithDistinctIds) {
  const absl::Time start = absl::Now();
  const absl::StatusOr<Grid> grid = ResolveWithDefaults(
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
