// Analyses of trials whose maps, models and scores are given, against numbers worked by hand.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/commands/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/parameters/safetensors.h"
#include "tasks/catalogue.h"
#include "tasks/puzzles.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AnalyzeTest : public CommandsTest {
 protected:
  struct GivenTrial {
    std::string encoding;  // its label
    uint64_t seed = 0;
    std::string name = "learned";
    double accuracy = 0.5;
    std::string optimizer = "adam";
    double stddev = 1;
  };

  // Trials that have succeeded, of latin_square with six validation puzzles.
  void Add(const std::vector<GivenTrial>& trials, const std::string& experiment = "e-1") {
    std::vector<std::string> ids;
    ids.reserve(trials.size());
    for (const GivenTrial& trial : trials) ids.push_back(absl::StrCat(trial.encoding, trial.seed));
    server_.AddExperiment(experiment, ids);
    for (size_t i = 0; i < trials.size(); ++i) {
      v1::TrialSpecification specification;
      specification.mutable_task()->set_name("latin_square");
      auto& parameters = *specification.mutable_task()->mutable_parameters();
      parameters["training_puzzles"].set_number_value(12);
      parameters["held_out_puzzles"].set_number_value(0);
      parameters["validation_puzzles"].set_number_value(9);
      specification.mutable_network()->set_name("layerwise_encoder");
      specification.mutable_encoding()->set_name(trials[i].name);
      specification.mutable_encoding()->set_label(trials[i].encoding);
      (*specification.mutable_encoding()->mutable_parameters())["stddev"].set_number_value(
          trials[i].stddev);
      specification.mutable_training()->mutable_optimizer()->set_name(trials[i].optimizer);
      specification.set_learning_rate(1e-4);
      specification.set_weight_seed(trials[i].seed);
      specification.set_data_seed(trials[i].seed);
      server_.SetSpecification(Name(ids[i], experiment), specification);
      server_.SetState(Name(ids[i], experiment), v1::SUCCEEDED);
      v1::QueryLengthAccuraciesResponse::Evaluation evaluation;
      evaluation.set_trial(Name(ids[i], experiment));
      evaluation.mutable_accuracies()->set_final(true);
      evaluation.mutable_accuracies()->add_lengths(1);
      evaluation.mutable_accuracies()->add_accuracies(trials[i].accuracy);
      server_.AddEvaluation(evaluation);
    }
  }

  static std::string Name(const std::string& id, const std::string& experiment = "e-1") {
    return absl::StrCat("experiments/", experiment, "/trials/bucket_sort-", id);
  }

  // A map of two tokens in one layer with one head; rows are queries.
  void AddMap(const std::string& trial, const std::vector<float>& probabilities, int sequence = 0,
              int first_token = 1) {
    v1::AttentionMap map;
    map.set_length(1);
    map.set_sequence(sequence);
    map.set_layers(1);
    map.set_heads(1);
    map.add_tokens(first_token);
    map.add_tokens(5);
    map.set_probabilities(probabilities.data(), probabilities.size() * sizeof(float));
    server_.AddAttentionMap(Name(trial), map);
  }

  // A map of a puzzle in two layers with one head. Every cell attends to all alike, but for the
  // cell `asked` in the second layer, whose attention is given.
  void AddPuzzleMap(const std::string& trial, const std::string& puzzle, int length, int asked,
                    const std::map<int, float>& attention) {
    v1::AttentionMap map;
    map.set_length(length);
    map.set_layers(2);
    map.set_heads(1);
    for (const char digit : puzzle) map.add_tokens(digit - '0');
    std::vector<float> probabilities(size_t{2} * 16 * 16, 1.0F / 16);
    for (int key = 0; key < 16; ++key) {
      const auto given = attention.find(key);
      probabilities[256 + 16 * asked + key] = given == attention.end() ? 0 : given->second;
    }
    map.set_probabilities(probabilities.data(), probabilities.size() * sizeof(float));
    server_.AddAttentionMap(Name(trial), map);
  }

  // The rows of the analysis as JSON, by the encoding.
  std::map<std::string, nlohmann::json> Rows(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "analyze");
    arguments.insert(arguments.end(), {"--output", "json"});
    EXPECT_EQ(Run(arguments), kSuccess) << err_;
    std::map<std::string, nlohmann::json> rows;
    for (const nlohmann::json& row : nlohmann::json::parse(out_)) rows[row["encoding"]] = row;
    return rows;
  }
};

TEST_F(AnalyzeTest, AttentionIsComparedOverAllPairsWithTheReference) {
  Add({{"ground", 1}, {"ground", 2}, {"near", 1}, {"far", 1}, {"blind", 1}});
  for (const char* trial : {"ground1", "ground2", "near1"}) AddMap(trial, {1, 0, 0.25, 0.75});
  AddMap("far1", {0.5, 0.5, 0.5, 0.5});
  auto rows = Rows({"attention", "e-1", "--reference", "ground"});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NEAR(rows["near"]["cosine"], 1, 1e-12);
  EXPECT_EQ(rows["near"]["pairs"], 2);
  // (1 0.5 + 0.25 0.5 + 0.75 0.5) / (sqrt(1 + 0.0625 + 0.5625) 1)
  EXPECT_NEAR(rows["far"]["cosine"], 1 / std::sqrt(1.625), 1e-12);
  EXPECT_EQ(rows["far"]["models"], 1);
  EXPECT_EQ(rows["ground"]["pairs"], 1) << "one pair of different seeds";
  EXPECT_NEAR(rows["ground"]["cosine"], 1, 1e-12);

  rows = Rows({"attention", "e-1", "--reference", "ground", "--measure", "js"});
  // Of the rows (1, 0) and (0.25, 0.75) from (0.5, 0.5), by the definition.
  const double first = 0.5 * std::log(4 / 3.0) + 0.25 * std::log(2 / 3.0) + 0.25 * std::log(2.0);
  const double second = 0.125 * std::log(2 / 3.0) + 0.375 * std::log(1.2) +
                        0.25 * std::log(4 / 3.0) + 0.25 * std::log(0.8);
  EXPECT_NEAR(rows["far"]["divergence"], (first + second) / 2, 1e-12);

  EXPECT_EQ(Run({"analyze", "attention", "e-1", "--reference", "ground"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("(1 sequence, 1 layer)"));
  EXPECT_THAT(out_, HasSubstr("Without attention maps: blind."));
  EXPECT_THAT(out_, HasSubstr("0.784"));
}

TEST_F(AnalyzeTest, ModelsOfTheReferenceAloneAreNoComparison) {
  Add({{"ground", 1}, {"other", 1}});
  EXPECT_EQ(Run({"analyze", "attention", "e-1", "--reference", "ground"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("no trial of ground has attention maps; record them with "
                              "evaluation.attention_lengths"));
  AddMap("ground1", {1, 0, 0, 1});
  EXPECT_EQ(Run({"analyze", "attention", "e-1", "--reference", "ground"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("only ground has attention maps; record them with"));
  EXPECT_THAT(err_, HasSubstr("--attention_sequences N"));
  AddMap("other1", {1, 0, 0, 1}, /*sequence=*/0, /*first_token=*/2);
  EXPECT_EQ(Run({"analyze", "attention", "e-1", "--reference", "ground"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("these are not the same"));
  EXPECT_EQ(Run({"analyze", "attention", "e-1", "--reference", "grund"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("did you mean \"ground\"?; there are ground, other"));
}

TEST_F(AnalyzeTest, AttentionStandsBesideThePublishedTable) {
  Add({{"ground", 1, "sin_cos_2d"}, {"learn_0.2", 1}});
  auto specification = v1::TrialSpecification();
  specification.mutable_task()->set_name("latin_square");
  specification.mutable_network()->set_name("layerwise_encoder");
  specification.mutable_encoding()->set_name("learned");
  specification.mutable_encoding()->set_label("learn_0.2");
  (*specification.mutable_encoding()->mutable_parameters())["stddev"].set_number_value(0.2);
  specification.set_learning_rate(1e-4);
  server_.SetSpecification(Name("learn_0.21"), specification);
  for (const char* trial : {"ground1", "learn_0.21"}) AddMap(trial, {1, 0, 0, 1});
  const auto rows =
      Rows({"attention", "e-1", "--reference", "ground", "--compare", "lst_pe_init/table_3"});
  EXPECT_EQ(rows.at("learn_0.2")["published"], 0.838);  // as the paper prints them
  EXPECT_EQ(rows.at("learn_0.2")["published_deviation"], 0.016);
  EXPECT_TRUE(rows.at("ground")["published"].is_null());
  EXPECT_EQ(Run({"analyze", "attention", "e-1", "--reference", "ground", "--compare",
                 "lst_pe_init/table_2"}),
            kUsage);
  EXPECT_THAT(err_, HasSubstr("lst_pe_init/table_2 has no cosines of attention maps"));
}

TEST_F(AnalyzeTest, AttentionIsHeldAgainstTheCellsThatSettleAPuzzle) {
  Add({{"near", 1, "learned", 0.75}, {"near", 2, "learned", 0.25}, {"blind", 1}});
  EXPECT_EQ(Run({"analyze", "ground_truth", "e-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("has attention maps; record them with evaluation."));
  // Settled by cells 1 to 3, and by 1, 4, 6, 7, 9 and 13.
  const std::string row = "5124000000000000", cross = "0400250300000000";
  AddPuzzleMap("near1", row, 1, 0, {{0, 0.25F}, {1, 0.5F}, {3, 0.25F}});
  AddPuzzleMap("near1", cross, 2, 5, {{13, 1.0F}});
  AddPuzzleMap("near2", row, 1, 0, {{0, 0.5F}, {1, 0.25F}, {15, 0.25F}});
  AddPuzzleMap("near2", cross, 2, 5, {{5, 1.0F}});
  EXPECT_EQ(Run({"analyze", "ground_truth", "e-1", "--output", "json"}), kSuccess) << err_;
  const nlohmann::json rows = nlohmann::json::parse(out_);
  ASSERT_EQ(rows.size(), 4u) << "two layers, two lengths, and none of the model without maps";
  EXPECT_EQ(rows[0]["layer"], 1);
  EXPECT_EQ(rows[0]["length"], 1);
  EXPECT_NEAR(rows[0]["share"], 3.0 / 16, 1e-7);
  EXPECT_NEAR(rows[0]["even_share"], 3.0 / 16, 1e-12);
  EXPECT_NEAR(rows[1]["share"], 6.0 / 16, 1e-7);
  EXPECT_EQ(rows[2]["layer"], 2);
  EXPECT_NEAR(rows[2]["share"], 0.5, 1e-7) << "0.75 and 0.25";
  EXPECT_NEAR(rows[2]["share_deviation"], 0.5 / std::sqrt(2.0), 1e-7);
  EXPECT_NEAR(rows[3]["share"], 0.5, 1e-7) << "1 and 0";
  EXPECT_EQ(rows[3]["models"], 2);
  EXPECT_EQ(rows[3]["puzzles"], 1);
  EXPECT_EQ(Run({"analyze", "ground_truth", "e-1"}), kSuccess);
  // Of the models' means over both puzzles, 0.875 and 0.125.
  EXPECT_THAT(out_, HasSubstr("50.0 ± 35.4 │ 28.1 │ 28.1 ± 0.0  50.0 ± 53.0 │      2\n"));
  EXPECT_THAT(out_, HasSubstr("(2 puzzles)"));
}

TEST_F(AnalyzeTest, OnlyTasksWithPuzzlesHaveAGroundTruth) {
  Add({{"near", 1}});
  v1::TrialSpecification specification;
  specification.mutable_task()->set_name("bucket_sort");
  server_.SetSpecification(Name("near1"), specification);
  EXPECT_EQ(Run({"analyze", "ground_truth", "e-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("learns bucket_sort, which has no puzzles"));
}

TEST_F(AnalyzeTest, SeedsThatSawOtherPuzzlesAreNotAveraged) {
  Add({{"near", 1}, {"near", 2}});
  AddPuzzleMap("near1", "5124000000000000", 1, 0, {{0, 1.0F}});
  AddPuzzleMap("near2", "1524000000000000", 1, 1, {{0, 1.0F}});
  EXPECT_EQ(Run({"analyze", "ground_truth", "e-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("are of other puzzles or layers than those of other seeds of near"));
}

// A model with these tables, one for each block.
std::string Model(const std::vector<std::vector<float>>& tables, int64_t columns) {
  models::TensorFile file;
  for (size_t b = 0; b < tables.size(); ++b) {
    file.tensors.push_back({.name = absl::StrCat("parameters/blocks.", b, ".encoding.table"),
                            .shape = {static_cast<int64_t>(tables[b].size()) / columns, columns},
                            .bytes = {reinterpret_cast<const char*>(tables[b].data()),
                                      tables[b].size() * sizeof(float)}});
  }
  const std::vector<float> other = {1, 2};
  file.tensors.push_back({.name = "parameters/embedding",
                          .shape = {2, 1},
                          .bytes = {reinterpret_cast<const char*>(other.data()), 8}});
  return models::WriteSafetensors(file);
}

TEST_F(AnalyzeTest, LearnedTablesAreMeasuredUpToARotation) {
  Add({{"small", 1}, {"small", 2}, {"rope", 1, "rope"}});
  // Rows 0 to 2 of sin_cos with d = 4, with features exchanged and one turned round.
  std::vector<float> turned;
  for (int p = 0; p < 3; ++p) {
    for (const double feature :
         {std::cos(p / 100.0), -std::sin(p), std::cos(p), std::sin(p / 100.0)}) {
      turned.push_back(static_cast<float>(feature));
    }
  }
  const std::vector<float> zeros(12, 0.0F);
  server_.SetModel(Name("small1"), 10, Model({turned, zeros}, 4));
  server_.SetModel(Name("small2"), 10, Model({zeros, zeros}, 4));
  const auto rows = Rows({"encodings", "e-1", "--reference", "sin_cos"});
  ASSERT_EQ(rows.size(), 1u);
  // A row of sines and cosines has the norm sqrt(2): from zeros the distance is sqrt(3 2).
  const double far = std::sqrt(6.0);
  EXPECT_NEAR(rows.at("small")["first_block"], far / 2, 2e-3);
  EXPECT_NEAR(rows.at("small")["all_blocks"], (far / 2 + far) / 2, 1e-3);
  EXPECT_EQ(rows.at("small")["models"], 2);
  EXPECT_EQ(Run({"analyze", "encodings", "e-1", "--reference", "sin_cos"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("Without a learned table: rope."));
  EXPECT_EQ(Run({"analyze", "encodings", "e-1", "--reference", "rope"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("\"rope\" is no encoding with a fixed table; give sin_cos or"));
}

TEST_F(AnalyzeTest, AModelThatIsNotKeptIsSaidToBeMissing) {
  Add({{"small", 1}});
  EXPECT_EQ(Run({"analyze", "encodings", "e-1", "--reference", "sin_cos"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("has no stored model"));
}

v1::Event Noise(const std::string& trial, const std::vector<double>& deviations,
                const std::vector<double>& accuracies) {
  v1::Event event;
  event.set_trial(trial);
  for (size_t i = 0; i < deviations.size(); ++i) {
    event.mutable_noise_accuracies()->add_deviations(deviations[i]);
    event.mutable_noise_accuracies()->add_accuracies(accuracies[i]);
    event.mutable_noise_accuracies()->add_losses(0);
  }
  return event;
}

TEST_F(AnalyzeTest, NoiseIsAveragedOverSeeds) {
  Add({{"small", 1, "learned", 0.9}, {"small", 2, "learned", 0.8}, {"large", 1}});
  EXPECT_EQ(Run({"analyze", "noise", "e-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("was evaluated under noise; set evaluation.embedding_noise"));
  server_.AddAnalysis(Noise(Name("small1"), {0.02, 0.1}, {0.8, 0.5}));
  server_.AddAnalysis(Noise(Name("small2"), {0.02, 0.1}, {0.6, 0.5}));
  EXPECT_EQ(Run({"analyze", "noise", "e-1", "--output", "csv"}), kSuccess);
  const std::string set = "\ne-1,latin_square,layerwise_encoder,small,1e-04,";
  EXPECT_THAT(out_, HasSubstr("learning_rate,noise,accuracy,accuracy_deviation,models\n"));
  EXPECT_THAT(out_, HasSubstr(set + "0,0.85"));
  EXPECT_THAT(out_, HasSubstr(set + "0.02,0.7"));
  EXPECT_THAT(out_, HasSubstr(set + "0.1,0.5,0,2"));
  EXPECT_THAT(out_, Not(HasSubstr("large")));
  EXPECT_EQ(Run({"analyze", "noise", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("70.0 ± 14.1"));
}

TEST_F(AnalyzeTest, HumansAreComparedPuzzleByPuzzle) {
  Add({{"small", 1}, {"small", 2}});
  // The puzzles that these trials are validated on, by condition.
  catalogue::Parameters parameters;
  parameters.Set("training_puzzles", int64_t{12});
  parameters.Set("held_out_puzzles", int64_t{0});
  parameters.Set("validation_puzzles", int64_t{9});
  const auto task = tasks::CreateTask("latin_square", parameters).value();
  const auto& puzzles = static_cast<const tasks::PuzzleTask&>(*task);
  const tasks::PuzzleSet validation = puzzles.Data(1)->validation;
  std::vector<std::string> easy;
  for (size_t i = 0; i < 9; ++i) {
    if (validation.conditions[i] != 0) continue;
    easy.push_back(puzzles.Format(absl::MakeSpan(validation.tokens).subspan(16 * i, 16)));
  }
  ASSERT_EQ(easy.size(), 3u);
  // People on the three puzzles of one vector, in another order.
  nlohmann::json file;
  const std::vector<double> human = {1, 0.5, 0.25};
  for (const size_t i : {2, 0, 1}) {
    file["puzzles"].push_back({{"puzzle", easy[i]}, {"human_accuracy", human[i]}});
  }
  const std::string people = File("people.json", file.dump());
  EXPECT_EQ(Run({"analyze", "humans", "e-1", "--file", people}), kFailure);
  EXPECT_THAT(err_, HasSubstr("no trial has scores of single puzzles; set "
                              "evaluation.sequence_scores"));
  for (const auto& [trial, scores] :
       std::map<std::string, std::vector<float>>{{"small1", {1, 1, 0}}, {"small2", {1, 0, 0}}}) {
    v1::Event event;
    event.set_trial(Name(trial));
    event.mutable_sequence_scores()->set_length(1);
    for (const float score : scores) {
      event.mutable_sequence_scores()->add_accuracies(score);
      event.mutable_sequence_scores()->add_losses(0);
    }
    server_.AddAnalysis(event);
  }
  const auto rows = Rows({"humans", "e-1", "--file", people});
  // Models (1, 0.5, 0) and people (1, 0.5, 0.25).
  const nlohmann::json& row = rows.at("small");
  EXPECT_NEAR(row["cosine"], 1.25 / std::sqrt(1.25 * 1.3125), 1e-9);
  EXPECT_NEAR(row["spearman"], 1, 1e-12);
  EXPECT_EQ(row["puzzles"], 3);
  EXPECT_NEAR(row["human_accuracy"], 1.75 / 3, 1e-12);

  const std::string silent =
      File("silent.json", R"({"puzzles": [{"puzzle": ")" + easy[0] + R"("}]})");
  EXPECT_EQ(Run({"analyze", "humans", "e-1", "--file", silent}), kUsage);
  EXPECT_THAT(err_, HasSubstr("no puzzle with a \"human_accuracy\""));
}

// The file of the 108 puzzles that people solved, which is no part of this repository.
TEST_F(AnalyzeTest, HumansAreReadFromThePublishedFile) {
  constexpr char kName[] = "lst_validation_108.json";
  const std::string folder = golden::DataFolder();
  std::ifstream file(folder + "/" + kName);
  if (folder.empty() || !file) {
    GTEST_SKIP() << "skipped: " << kName << " is neither in $LENGTHWISE_DATA_DIR nor in "
                 << "../shared/data";
  }
  setenv("LENGTHWISE_PUZZLE_DIR", folder.c_str(), 1);
  Add({{"small", 1}});
  v1::TrialSpecification specification;
  specification.mutable_task()->set_name("latin_square");
  auto& parameters = *specification.mutable_task()->mutable_parameters();
  parameters["training_puzzles"].set_number_value(12);
  parameters["held_out_puzzles"].set_number_value(0);
  parameters["validation_file"].set_string_value(kName);
  specification.mutable_encoding()->set_name("learned");
  specification.mutable_encoding()->set_label("small");
  server_.SetSpecification(Name("small1"), specification);
  // A model that solves the puzzles which more than four in five people do.
  std::map<int, std::vector<float>> scores;
  double both = 0, solved = 0, squares = 0, sum = 0;
  const nlohmann::json published = nlohmann::json::parse(file);
  for (const nlohmann::json& puzzle : published.at("puzzles")) {
    const double human = puzzle.at("human_accuracy");
    const bool solves = human > 0.8;
    scores[puzzle.at("vectors")].push_back(solves ? 1 : 0);
    both += solves ? human : 0;
    solved += solves ? 1 : 0;
    squares += human * human;
    sum += human;
  }
  for (const auto& [vectors, accuracies] : scores) {
    v1::Event event;
    event.set_trial(Name("small1"));
    event.mutable_sequence_scores()->set_length(vectors);
    for (const float accuracy : accuracies) {
      event.mutable_sequence_scores()->add_accuracies(accuracy);
      event.mutable_sequence_scores()->add_losses(0);
    }
    server_.AddAnalysis(event);
  }
  const auto rows = Rows({"humans", "e-1", "--file", folder + "/" + kName});
  unsetenv("LENGTHWISE_PUZZLE_DIR");
  const nlohmann::json& row = rows.at("small");
  EXPECT_EQ(row["puzzles"], 108);
  EXPECT_NEAR(row["human_accuracy"], sum / 108, 1e-12);
  EXPECT_NEAR(row["accuracy"], solved / 108, 1e-12);
  EXPECT_NEAR(row["cosine"], both / std::sqrt(solved * squares), 1e-12);
  EXPECT_GT(row["spearman"], 0.7);
}

TEST_F(AnalyzeTest, SeedsAreTestedInPairs) {
  // As in statistics/paired_t_test_test.cc: the differences 0.1, 0.2, 0.3 have t = 2 sqrt(3).
  Add({{"ground", 1, "sin_cos_2d", 0.6},
       {"ground", 2, "sin_cos_2d", 0.8},
       {"ground", 3, "sin_cos_2d", 0.7},
       {"small", 3, "learned", 0.4},
       {"small", 2, "learned", 0.6},
       {"small", 1, "learned", 0.5},
       {"once", 1, "rope", 0.5}});
  const auto rows = Rows({"t_test", "e-1", "--reference", "ground"});
  EXPECT_NEAR(rows.at("small")["t"], 2 * std::sqrt(3.0), 1e-9);
  EXPECT_EQ(rows.at("small")["degrees_of_freedom"], 2);
  EXPECT_TRUE(rows.at("once")["t"].is_null());
  EXPECT_EQ(rows.count("ground"), 0u);
  EXPECT_EQ(Run({"analyze", "t_test", "e-1", "--reference", "ground"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("3.46"));
  EXPECT_THAT(out_, HasSubstr("a test needs at least two seeds"));
}

// As a loop of `lengthwise evaluate` over an experiment's trials makes them.
TEST_F(AnalyzeTest, SeveralExperimentsAreAnalyzedAsOne) {
  Add({{"ground", 1, "sin_cos_2d"}}, "a-1");
  Add({{"small", 1}}, "b-1");
  const auto rows = Rows({"t_test", "a-1", "b-1", "--reference", "ground"});
  EXPECT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.count("small"), 1u);
}

TEST_F(AnalyzeTest, AModelThatWasEvaluatedAgainCountsOnce) {
  Add({{"small", 1, "learned", 0.9}}, "a-1");
  Add({{"small", 1, "learned", 0.9}}, "a_evaluation-1");
  server_.AddAnalysis(Noise(Name("small1", "a_evaluation-1"), {0.1}, {0.5}));
  EXPECT_EQ(Rows({"noise", "a-1", "a_evaluation-1"}).at("small")["models"], 1);
  server_.AddAnalysis(Noise(Name("small1", "a-1"), {0.1}, {0.25}));
  const auto rows = Rows({"noise", "a-1", "a_evaluation-1"});
  EXPECT_EQ(rows.at("small")["models"], 1);
  EXPECT_EQ(rows.at("small")["accuracy"], 0.25) << "that of the experiment that is named first";
}

// As experiments/latin_square/table1.yaml and table6.yaml: the same labels, rate and seeds.
TEST_F(AnalyzeTest, WhatWasTrainedOtherwiseUnderTheSameLabelsHasItsOwnRow) {
  Add({{"ground", 1, "sin_cos_2d", 0.9, "adam"},
       {"ground", 2, "sin_cos_2d", 0.7, "adam"},
       {"small", 1, "learned", 0.6, "adam"},
       {"small", 2, "learned", 0.5, "adam"}},
      "adam-1");
  Add({{"ground", 1, "sin_cos_2d", 0.5, "adamw"},
       {"ground", 2, "sin_cos_2d", 0.3, "adamw"},
       {"small", 1, "learned", 0.1, "adamw"},
       {"small", 2, "learned", 0.0, "adamw"}},
      "adamw-1");
  EXPECT_EQ(
      Run({"analyze", "t_test", "adam-1", "adamw-1", "--reference", "ground", "--output", "json"}),
      kSuccess)
      << err_;
  const nlohmann::json rows = nlohmann::json::parse(out_);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& [row, experiment, own, reference] :
       {std::tuple(0, "adam-1", 0.55, 0.8), std::tuple(1, "adamw-1", 0.05, 0.4)}) {
    EXPECT_EQ(rows[row]["experiment"], experiment);
    EXPECT_EQ(rows[row]["encoding"], "small");
    EXPECT_NEAR(rows[row]["accuracy"], own, 1e-12);
    EXPECT_NEAR(rows[row]["reference_accuracy"], reference, 1e-12)
        << "a reference that was trained in the same way";
  }
  EXPECT_EQ(Run({"analyze", "t_test", "adam-1", "adamw-1", "--reference", "ground"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("experiment  encoding"));
  EXPECT_THAT(out_, HasSubstr("adamw-1     small"));
  EXPECT_EQ(Run({"analyze", "t_test", "adam-1", "--reference", "ground"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("experiment")));
}

TEST_F(AnalyzeTest, EncodingsOfOneLabelWithOtherParametersAreNotAveraged) {
  Add({{"learned", 1, "learned", 0.5, "adam", 0.2}}, "narrow-1");
  Add({{"learned", 2, "learned", 0.5, "adam", 2}}, "wide-1");
  server_.AddAnalysis(Noise(Name("learned1", "narrow-1"), {0.1}, {0.5}));
  server_.AddAnalysis(Noise(Name("learned2", "wide-1"), {0.1}, {0.25}));
  EXPECT_EQ(Run({"analyze", "noise", "narrow-1", "wide-1"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("narrow-1    learned"));
  EXPECT_THAT(out_, HasSubstr("wide-1      learned"));
  EXPECT_THAT(out_, Not(HasSubstr("±")));
}

TEST_F(AnalyzeTest, WhatHasNotSucceededIsNotAnalyzed) {
  server_.AddExperiment("e-1", {"none"});
  EXPECT_EQ(Run({"analyze", "noise", "e-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("no trial of e-1 has succeeded yet: nothing to analyze"));
}

}  // namespace
}  // namespace lengthwise::client
