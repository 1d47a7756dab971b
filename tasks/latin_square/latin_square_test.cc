// Checks the generated sets, at the paper's sizes, against the paper's description of its data
// (sections 2.1 and 2.2).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/all_tasks.h"
#include "tasks/latin_square/testing/completions.h"
#include "tasks/puzzles.h"

namespace lengthwise::tasks::latin_square {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Task> Create(const catalogue::Parameters& given = {}) {
  std::vector<catalogue::Problem> problems;
  auto task = LatinSquare().create(catalogue::Resolve(LatinSquare(), given, "task", problems));
  EXPECT_TRUE(problems.empty());
  return task;
}

const PuzzleTask& AsPuzzles(const Task& task) { return dynamic_cast<const PuzzleTask&>(task); }

// Puzzle `i` of a set.
Puzzle At(const PuzzleSet& set, int64_t i) {
  Puzzle puzzle = {};
  for (size_t cell = 0; cell < kCells; ++cell) {
    puzzle[cell] = static_cast<uint8_t>(set.tokens.at(static_cast<size_t>(i) * kCells + cell));
  }
  return puzzle;
}

std::set<Puzzle> Puzzles(const PuzzleSet& set) {
  std::set<Puzzle> puzzles;
  for (int64_t i = 0; i < set.size(); ++i) puzzles.insert(At(set, i));
  return puzzles;
}

std::map<int32_t, int64_t> Count(const std::vector<int32_t>& values) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t value : values) ++counts[value];
  return counts;
}

class LatinSquareTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    task_ = Create().release();
    data_ = new PuzzleData(AsPuzzles(*task_).Data(1).value());
  }
  static void TearDownTestSuite() {
    delete data_;
    delete task_;
  }
  static const Task* task_;
  static const PuzzleData* data_;
};
const Task* LatinSquareTest::task_ = nullptr;
const PuzzleData* LatinSquareTest::data_ = nullptr;

TEST_F(LatinSquareTest, HasThePapersSizes) {
  EXPECT_EQ(data_->training.size(), 8000);
  EXPECT_EQ(data_->held_out.size(), 1000);
  EXPECT_EQ(data_->validation.size(), 108);
  EXPECT_EQ(data_->training.tokens.size(), 8000U * 16U);
  EXPECT_EQ(AsPuzzles(*task_).cells(), 16);
  EXPECT_EQ(AsPuzzles(*task_).classes(), 4);
  EXPECT_EQ(AsPuzzles(*task_).conditions().size(), 3U);
}

TEST_F(LatinSquareTest, EveryTargetIsUnambiguous) {
  for (const PuzzleSet* set : {&data_->held_out, &data_->validation}) {
    for (int64_t i = 0; i < set->size(); ++i) {
      const Puzzle puzzle = At(*set, i);
      ASSERT_TRUE(ParsePuzzle(FormatPuzzle(puzzle)).ok());
      EXPECT_EQ(Complete(puzzle).target_symbols,
                std::set<int>{set->classes.at(static_cast<size_t>(i)) + 1})
          << FormatPuzzle(puzzle);
    }
  }
}

TEST_F(LatinSquareTest, ConditionsAreBalanced) {
  EXPECT_EQ(Count(data_->validation.conditions),
            (std::map<int32_t, int64_t>{{0, 36}, {1, 36}, {2, 36}}));
  auto pool = Count(data_->training.conditions);
  for (const auto& [condition, count] : Count(data_->held_out.conditions)) {
    pool[condition] += count;
  }
  EXPECT_EQ(pool, (std::map<int32_t, int64_t>{{0, 3000}, {1, 3000}, {2, 3000}}));
  for (const auto& [condition, count] : Count(data_->training.conditions)) {
    // A random split: 2667 with a standard deviation of about 14.
    EXPECT_NEAR(static_cast<double>(count), 2666.7, 60) << condition;
  }
}

// The comparisons with the paper's tables state this about the puzzles (experiments/published).
TEST_F(LatinSquareTest, ValidationPuzzlesHaveFiveToNineClues) {
  std::set<int64_t> clues;
  for (const Puzzle& puzzle : Puzzles(data_->validation)) {
    clues.insert(std::count_if(puzzle.begin(), puzzle.end(),
                               [](uint8_t symbol) { return symbol >= 1 && symbol <= 4; }));
  }
  EXPECT_THAT(clues, ElementsAre(5, 6, 7, 8, 9));
}

TEST_F(LatinSquareTest, PuzzlesAreDistinct) {
  std::set<Puzzle> all = Puzzles(data_->training);
  EXPECT_EQ(all.size(), 8000U);
  all.merge(Puzzles(data_->held_out));
  EXPECT_EQ(all.size(), 9000U);
  all.merge(Puzzles(data_->validation));
  EXPECT_EQ(all.size(), 9108U);
}

// Computed directly on the flattened one-hot vectors of 16 x 5.
TEST_F(LatinSquareTest, TrainingPuzzlesKeepTheirDissimilarity) {
  double smallest = 1;
  for (const PuzzleSet* set : {&data_->training, &data_->held_out}) {
    for (int64_t i = 0; i < set->size(); ++i) {
      const Puzzle a = At(*set, i);
      for (int64_t j = 0; j < data_->validation.size(); ++j) {
        const Puzzle b = At(data_->validation, j);
        int both = 0, either = 0;
        for (size_t cell = 0; cell < kCells; ++cell) {
          both += a[cell] != 0 && a[cell] == b[cell];
          either += a[cell] == b[cell] ? a[cell] != 0 : (a[cell] != 0) + (b[cell] != 0);
        }
        smallest = std::min(smallest, 1 - static_cast<double>(both) / either);
      }
    }
  }
  EXPECT_GT(smallest, 0.8);
  EXPECT_LT(smallest, 0.85) << "the bound binds";
}

TEST_F(LatinSquareTest, SeedsDifferOnlyInTheSplit) {
  const PuzzleData other = AsPuzzles(*task_).Data(2).value();
  EXPECT_NE(other.training.tokens, data_->training.tokens);
  EXPECT_EQ(other.validation.tokens, data_->validation.tokens);
  std::set<Puzzle> pool = Puzzles(data_->training), others = Puzzles(other.training);
  EXPECT_NE(pool, others);
  pool.merge(Puzzles(data_->held_out));
  others.merge(Puzzles(other.held_out));
  EXPECT_EQ(pool, others);
}

// Parameters for a small, fast set.
catalogue::Parameters Few(int64_t puzzle_seed) {
  catalogue::Parameters parameters;
  parameters.Set("puzzle_seed", puzzle_seed);
  parameters.Set("training_puzzles", int64_t{60});
  parameters.Set("held_out_puzzles", int64_t{0});
  return parameters;
}

TEST(LatinSquareSeedsTest, DataIsAFunctionOfParametersAndSeed) {
  const auto task = Create(Few(1)), again = Create(Few(1)), other = Create(Few(2));
  const PuzzleData data = AsPuzzles(*task).Data(1).value();
  EXPECT_EQ(data.training.size(), 60);
  EXPECT_EQ(data.held_out.size(), 0);
  EXPECT_EQ(AsPuzzles(*again).Data(1)->training.tokens, data.training.tokens);
  EXPECT_EQ(AsPuzzles(*again).Data(1)->training.classes, data.training.classes);
  EXPECT_EQ(AsPuzzles(*again).Data(1)->validation.tokens, data.validation.tokens);
  EXPECT_NE(AsPuzzles(*other).Data(1)->validation.tokens, data.validation.tokens);
}

TEST(LatinSquareFormatTest, WritesTokensAsPuzzles) {
  const auto task = Create();
  const std::vector<int32_t> tokens = {5, 2, 4, 1, 0, 1, 0, 0, 2, 4, 1, 0, 1, 3, 2, 4};
  EXPECT_EQ(AsPuzzles(*task).Format(tokens), "5241010024101324");
}

class PuzzleFilesTest : public ::testing::Test {
 protected:
  PuzzleFilesTest() { setenv("LENGTHWISE_PUZZLE_DIR", testing::TempDir().c_str(), 1); }

  static std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(testing::TempDir() + "/" + name) << text;
    return name;
  }
  const std::string training_ = Write(
      "training.json",
      R"({"binary": [["2000500234001000", 4], ["1000354100000000", 2], ["1324204042303050", 1]]})");
  const std::string validation_ =
      Write("validation.json",
            R"({"puzzles": [{"puzzle": "0504200302303000"}, {"puzzle": "0040405210200030"}]})");

  static catalogue::Parameters Files(const std::string& training, const std::string& validation,
                                     int64_t count) {
    catalogue::Parameters parameters;
    parameters.Set("training_file", training);
    parameters.Set("validation_file", validation);
    parameters.Set("training_puzzles", count);
    parameters.Set("held_out_puzzles", int64_t{1});
    return parameters;
  }
};

TEST_F(PuzzleFilesTest, TrainsAndValidatesOnPuzzlesFromFiles) {
  const auto task = Create(Files(training_, validation_, 2));
  const PuzzleData data = AsPuzzles(*task).Data(7).value();
  EXPECT_EQ(data.training.size(), 2);
  EXPECT_EQ(data.held_out.size(), 1);
  ASSERT_EQ(data.validation.size(), 2);
  EXPECT_EQ(FormatPuzzle(At(data.validation, 0)), "0504200302303000") << "in the file's order";
  EXPECT_EQ(data.validation.conditions, (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(data.validation.classes, (std::vector<int32_t>{2, 0}));
}

TEST_F(PuzzleFilesTest, NamesIncompatibleFiles) {
  const auto problem = [](const catalogue::Parameters& parameters) {
    const auto task = Create(parameters);
    return std::string(AsPuzzles(*task).Data(1).status().message());
  };
  EXPECT_THAT(problem(Files(training_, validation_, 3)),
              HasSubstr("has 3 puzzles; training_puzzles (3) and held_out_puzzles (1)"));
  EXPECT_THAT(problem(Files(training_, "", 2)), HasSubstr("training_file needs a validation_file"));
  EXPECT_THAT(problem(Files(training_, training_, 2)),
              HasSubstr("is in training_file and validation_file"));
  EXPECT_THAT(problem(Files("nowhere.json", validation_, 2)), HasSubstr("nowhere.json"));
}

TEST_F(PuzzleFilesTest, ReadsOnlyTheWorkersFolder) {
  const auto status = [](const std::string& name) {
    const auto task = Create(Files(name, name, 2));
    return AsPuzzles(*task).Data(1).status();
  };
  for (const std::string name : {"/etc/passwd", "../validation.json", "..", "a/b.json"}) {
    EXPECT_THAT(status(name).message(), HasSubstr("not in the worker's puzzle folder")) << name;
  }
  unsetenv("LENGTHWISE_PUZZLE_DIR");
  EXPECT_THAT(status("validation.json").message(), HasSubstr("has no puzzle folder"));
}

}  // namespace
}  // namespace lengthwise::tasks::latin_square
