// Puzzles are classified as by the reference implementation and by counting completions. If the
// published puzzles are available, checks those, too, and that generated puzzles resemble them.
#include "tasks/puzzles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/all_tasks.h"
#include "tasks/latin_square/puzzle.h"
#include "tasks/latin_square/testing/completions.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::tasks::latin_square {
namespace {

using Json = nlohmann::json;

Puzzle Parse(const Json& text) { return ParsePuzzle(text.get<std::string>()).value(); }

class GoldenPuzzlesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = golden::Folder("encodings_and_networks") + "/lst_puzzles.json";
    std::ifstream file(path);
    if (!file) GTEST_SKIP() << path << " is absent";
    golden_ = Json::parse(file);
  }
  Json golden_;
};

TEST_F(GoldenPuzzlesTest, MatchTheReferenceClassifier) {
  for (const Json& expected : golden_.at("puzzles")) {
    const Puzzle puzzle = Parse(expected.at("puzzle"));
    SCOPED_TRACE(FormatPuzzle(puzzle));
    EXPECT_EQ(Deduce(puzzle), (Deduction{expected.at("vectors").get<int>(),
                                         expected.at("solution").get<uint8_t>()}));
    const Completions completions = Complete(puzzle);
    EXPECT_EQ(completions.count, expected.at("completions").get<int64_t>());
    EXPECT_EQ(completions.target_symbols, std::set<int>{expected.at("solution").get<int>()});
  }
  EXPECT_FALSE(golden_.at("puzzles").empty());
}

TEST_F(GoldenPuzzlesTest, WithoutARuleHaveNoCondition) {
  for (const Json& expected : golden_.at("unsolvable_by_rules")) {
    const Puzzle puzzle = Parse(expected.at("puzzle"));
    EXPECT_EQ(Deduce(puzzle), std::nullopt) << FormatPuzzle(puzzle);
    EXPECT_EQ(Complete(puzzle).target_symbols, std::set<int>{expected.at("solution").get<int>()});
  }
  for (const Json& expected : golden_.at("ambiguous")) {
    const Puzzle puzzle = Parse(expected.at("puzzle"));
    EXPECT_EQ(Deduce(puzzle), std::nullopt) << FormatPuzzle(puzzle);
    EXPECT_EQ(Complete(puzzle).target_symbols,
              expected.at("possible_target_values").get<std::set<int>>());
  }
}

TEST_F(GoldenPuzzlesTest, TokenFeaturesMatchPuzzleTask) {
  for (const Json& expected : golden_.at("one_hot_examples")) {
    const Puzzle puzzle = Parse(expected.at("puzzle"));
    for (size_t cell = 0; cell < kCells; ++cell) {
      std::vector<int> features(kCellValues - 1);
      if (puzzle[cell] > 0) features.at(puzzle[cell] - 1U) = 1;
      EXPECT_EQ(features, expected.at("one_hot").at(cell).get<std::vector<int>>()) << cell;
    }
    std::vector<int> target(kSide);
    target.at(Deduce(puzzle)->symbol - 1U) = 1;
    EXPECT_EQ(target, expected.at("target_one_hot").get<std::vector<int>>());
  }
}

TEST_F(GoldenPuzzlesTest, DissimilaritiesMatchTheReference) {
  for (const Json& expected : golden_.at("jaccard")) {
    EXPECT_NEAR(
        Features(Parse(expected.at("a"))).DissimilarityTo(Features(Parse(expected.at("b")))),
        expected.at("jaccard_dissimilarity_onehot80").get<double>(), 1e-9);
  }
}

constexpr char kTraining[] = "lst_generated_9000.json";
constexpr char kValidation[] = "lst_validation_108.json";

class PublishedPuzzlesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = golden::DataFolder();
    training_file_ = folder + "/" + kTraining;
    validation_file_ = folder + "/" + kValidation;
    if (folder.empty() || !std::ifstream(training_file_) || !std::ifstream(validation_file_)) {
      GTEST_SKIP() << "lst_generated_9000.json and lst_validation_108.json are neither in "
                      "$LENGTHWISE_DATA_DIR nor in ../shared/data";
    }
    setenv("LENGTHWISE_PUZZLE_DIR", folder.c_str(), 1);
  }

  PuzzleData Data(const std::string& training_file) const {
    catalogue::Parameters given;
    given.Set("training_file", training_file);
    given.Set("validation_file", std::string(kValidation));
    std::vector<catalogue::Problem> problems;
    const auto task = LatinSquare().create(catalogue::Resolve(LatinSquare(), given, "", problems));
    auto data = dynamic_cast<const PuzzleTask&>(*task).Data(1);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? *data : PuzzleData{};
  }

  std::string training_file_, validation_file_;
};

// Reading a file checks its solutions and conditions.
TEST_F(PublishedPuzzlesTest, AreClassifiedAsByTheirAuthors) {
  const auto training = ReadPuzzleFile(training_file_);
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_EQ(training->size(), 9000U);
  const auto validation = ReadPuzzleFile(validation_file_);
  ASSERT_TRUE(validation.ok()) << validation.status();
  ASSERT_EQ(validation->size(), 108U);
  std::array<int, 4> conditions = {};
  double smallest = 1;
  for (const SolvedPuzzle& solved : *validation) {
    ++conditions.at(static_cast<size_t>(solved.deduction.vectors));
    const Features features(solved.puzzle);
    for (const SolvedPuzzle& other : *training) {
      smallest = std::min(smallest, features.DissimilarityTo(Features(other.puzzle)));
    }
  }
  EXPECT_EQ(conditions, (std::array<int, 4>{0, 36, 36, 36}));
  EXPECT_GT(smallest, 0.8);
}

TEST_F(PublishedPuzzlesTest, CanBeTrainedAndValidatedOn) {
  const PuzzleData data = Data(kTraining);
  EXPECT_EQ(data.training.size(), 8000);
  EXPECT_EQ(data.held_out.size(), 1000);
  EXPECT_EQ(data.validation.size(), 108);
}

// Fraction of the puzzles of one condition, by number of clues.
using Shares = std::array<double, kCells>;

std::array<Shares, 3> SharesByClues(const PuzzleData& data) {
  std::array<Shares, 3> shares = {};
  std::array<double, 3> sizes = {};
  for (const PuzzleSet* set : {&data.training, &data.held_out}) {
    for (size_t i = 0; i < set->classes.size(); ++i) {
      const auto first = set->tokens.begin() + static_cast<std::ptrdiff_t>(i * kCells);
      const auto clues = std::count_if(first, first + kCells,
                                       [](int32_t token) { return token != 0 && token != 5; });
      const auto condition = static_cast<size_t>(set->conditions[i]);
      shares.at(condition).at(static_cast<size_t>(clues)) += 1;
      sizes.at(condition) += 1;
    }
  }
  for (size_t condition = 0; condition < 3; ++condition) {
    for (double& share : shares[condition]) share /= sizes[condition];
  }
  return shares;
}

TEST_F(PublishedPuzzlesTest, GeneratedPuzzlesHaveThePublishedClues) {
  const std::array<Shares, 3> published = SharesByClues(Data(kTraining));
  const std::array<Shares, 3> made = SharesByClues(Data(""));
  for (size_t condition = 0; condition < 3; ++condition) {
    double moved = 0;  // half the sum of differences: the fraction that would have to change
    for (size_t clues = 0; clues < kCells; ++clues) {
      moved += std::abs(published[condition][clues] - made[condition][clues]) / 2;
    }
    EXPECT_LT(moved, 0.06) << condition + 1 << " vectors";
    RecordProperty("moved_" + std::to_string(condition + 1), std::to_string(moved));
  }
}

}  // namespace
}  // namespace lengthwise::tasks::latin_square
