#include "tasks/latin_square/generator.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/latin_square/testing/completions.h"

namespace lengthwise::tasks::latin_square {
namespace {

using ::testing::HasSubstr;

std::vector<SolvedPuzzle> Draw(Blanking blanking, int count) {
  std::vector<SolvedPuzzle> puzzles;
  for (uint64_t i = 0; static_cast<int>(puzzles.size()) < count; ++i) {
    random::Stream stream(1, random::Purpose::kPuzzles, i);
    const Puzzle drawn = DrawPuzzle({.blanking = blanking}, stream);
    if (const auto deduction = Deduce(drawn)) puzzles.push_back({drawn, *deduction});
  }
  return puzzles;
}

// Filling cell by cell with uniform choices gives a square the probability of the product, over its
// cells, of one divided by the number of choices. Restarts keep these proportions.
TEST(DrawLatinSquareTest, MatchesFillingCellByCell) {
  std::map<Puzzle, int64_t> counts;
  constexpr uint64_t kDraws = 60000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    random::Stream stream(2, random::Purpose::kPuzzles, i);
    ++counts[DrawLatinSquare(stream)];
  }
  std::vector<int64_t> drawn;
  std::vector<double> probabilities;
  for (const Puzzle& square : AllLatinSquares()) {
    double probability = 1;
    for (size_t cell = 0; cell < kCells; ++cell) {
      std::set<uint8_t> choices = {1, 2, 3, 4};
      for (size_t other = 0; other < cell; ++other) {
        const bool in_line = other / kSide == cell / kSide || other % kSide == cell % kSide;
        if (in_line) choices.erase(square[other]);
      }
      probability /= static_cast<double>(choices.size());
    }
    drawn.push_back(counts[square]);
    probabilities.push_back(probability);
  }
  ASSERT_EQ(counts.size(), 576U);
  EXPECT_TRUE(chomsky::Fits(drawn, probabilities));
}

TEST(DrawPuzzleTest, PuzzlesAreUniqueWithTheDrawnClues) {
  for (const Blanking blanking : {Blanking::kPublished, Blanking::kDeducible}) {
    for (const SolvedPuzzle& solved : Draw(blanking, 2000)) {
      ASSERT_TRUE(ParsePuzzle(FormatPuzzle(solved.puzzle)).ok()) << FormatPuzzle(solved.puzzle);
      ASSERT_EQ(Complete(solved.puzzle).target_symbols, std::set<int>{solved.deduction.symbol});
      ASSERT_EQ(Deduce(solved.puzzle), solved.deduction);
      const auto clues =
          std::count_if(solved.puzzle.begin(), solved.puzzle.end(),
                        [](uint8_t value) { return value != kBlank && value != kTarget; });
      EXPECT_GE(clues, 3);
      EXPECT_LE(clues, 11);
    }
  }
}

// If every blank is deducible in the reverse order of blanking, the square has one completion.
TEST(DrawPuzzleTest, DeducibleBlankingLeavesOneCompletion) {
  for (const SolvedPuzzle& solved : Draw(Blanking::kDeducible, 1000)) {
    EXPECT_EQ(Complete(solved.puzzle).count, 1) << FormatPuzzle(solved.puzzle);
  }
}

TEST(DrawPuzzleTest, PublishedBlankingFavoursTheFirstColumn) {
  const auto clues_by_column = [](Blanking blanking) {
    std::array<int, kSide> counts = {};
    for (const SolvedPuzzle& solved : Draw(blanking, 6000)) {
      for (size_t cell = 0; cell < kCells; ++cell) {
        counts[cell % kSide] += solved.puzzle[cell] >= 1 && solved.puzzle[cell] <= 4;
      }
    }
    return counts;
  };
  const auto published = clues_by_column(Blanking::kPublished);
  const auto deducible = clues_by_column(Blanking::kDeducible);
  for (size_t column = 1; column < kSide; ++column) {
    EXPECT_GT(published[0], published[column] * 1.03);
    EXPECT_LT(deducible[0], deducible[column] * 1.03);
  }
}

TEST(GeneratePuzzlesTest, SharesTheCountEvenlyByCondition) {
  std::array<int, 3> conditions = {};
  std::set<Puzzle> different;
  const auto puzzles = GeneratePuzzles({.count = 200}, 5, Part::kPool);
  ASSERT_TRUE(puzzles.ok()) << puzzles.status();
  for (const SolvedPuzzle& solved : *puzzles) {
    ++conditions.at(static_cast<size_t>(solved.deduction.vectors - 1));
    different.insert(solved.puzzle);
  }
  EXPECT_EQ(conditions, (std::array<int, 3>{67, 67, 66}));
  EXPECT_EQ(different.size(), 200U);
}

TEST(GeneratePuzzlesTest, IsAFunctionOfSeedAndPart) {
  const Wanted wanted{.count = 30};
  EXPECT_EQ(*GeneratePuzzles(wanted, 5, Part::kPool), *GeneratePuzzles(wanted, 5, Part::kPool));
  EXPECT_NE(*GeneratePuzzles(wanted, 5, Part::kPool), *GeneratePuzzles(wanted, 6, Part::kPool));
  EXPECT_NE(*GeneratePuzzles(wanted, 5, Part::kPool),
            *GeneratePuzzles(wanted, 5, Part::kValidation));
}

TEST(GeneratePuzzlesTest, KeepsApartFromOtherPuzzles) {
  const Puzzle other = ParsePuzzle("5241010024101324").value();
  const auto puzzles = GeneratePuzzles(
      {.count = 60, .apart_from = {&other, 1}, .minimum_dissimilarity = 0.95}, 5, Part::kPool);
  ASSERT_TRUE(puzzles.ok()) << puzzles.status();
  for (const SolvedPuzzle& solved : *puzzles) {
    // At most one cell in twenty in common; 1 - 1/20 is not above 0.95.
    int same = 0, any = 0;
    for (size_t cell = 0; cell < kCells; ++cell) {
      const uint8_t a = solved.puzzle[cell], b = other[cell];
      same += a != 0 && a == b;
      any += a == b ? a != 0 : (a != 0) + (b != 0);
    }
    EXPECT_LT(20 * same, any) << FormatPuzzle(solved.puzzle);
  }
}

TEST(GeneratePuzzlesTest, GivesUpWhenPuzzlesAreTooRare) {
  // Each square's 16 cells hold two clues or more and a target: at least 2/17 in common with one of
  // them.
  const std::vector<Puzzle>& everything = AllLatinSquares();
  const auto puzzles = GeneratePuzzles(
      {.count = 3, .apart_from = everything, .minimum_dissimilarity = 0.9}, 5, Part::kPool);
  EXPECT_EQ(puzzles.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(puzzles.status().message()), HasSubstr("0 of 3 distinct puzzles"));
}

TEST(WithVariantsTest, TurnsAndRenamesEachPuzzleTwice) {
  const auto turned = [](const Puzzle& puzzle) {
    Puzzle result = {};
    for (size_t row = 0; row < kSide; ++row) {
      for (size_t column = 0; column < kSide; ++column) {
        result[column * kSide + 3 - row] = puzzle[row * kSide + column];
      }
    }
    return result;
  };
  const auto originals = GeneratePuzzles({.count = 36}, 5, Part::kValidation).value();
  const std::vector<SolvedPuzzle> all = WithVariants(originals, 5);
  ASSERT_EQ(all.size(), 108U);
  std::set<Puzzle> different;
  for (size_t i = 0; i < all.size(); ++i) {
    const SolvedPuzzle& original = originals[i / 3];
    different.insert(all[i].puzzle);
    EXPECT_EQ(Deduce(all[i].puzzle), all[i].deduction);
    EXPECT_EQ(all[i].deduction.vectors, original.deduction.vectors);
    // Some rotation of the original has the same blank cells and a consistent renaming of symbols.
    bool is_a_turn = false;
    Puzzle candidate = original.puzzle;
    for (int quarters = 0; quarters < 4; ++quarters, candidate = turned(candidate)) {
      std::map<uint8_t, std::set<uint8_t>> names;
      for (size_t cell = 0; cell < kCells; ++cell) {
        names[candidate[cell]].insert(all[i].puzzle[cell]);
      }
      is_a_turn |= names[kBlank] == std::set<uint8_t>{kBlank} &&
                   names[kTarget] == std::set<uint8_t>{kTarget} &&
                   std::all_of(names.begin(), names.end(),
                               [](const auto& name) { return name.second.size() == 1; });
    }
    EXPECT_TRUE(is_a_turn) << FormatPuzzle(original.puzzle) << " " << FormatPuzzle(all[i].puzzle);
  }
  EXPECT_EQ(different.size(), 108U);
}

// The published validation set contains a puzzle and this variant of it.
TEST(WithVariantsTest, RotationMatchesThePublishedPuzzles) {
  const Puzzle original = ParsePuzzle("0040405210200030").value();
  const SolvedPuzzle variant = TurnAndRename({original, *Deduce(original)}, 1, {2, 3, 4, 1});
  EXPECT_EQ(FormatPuzzle(variant.puzzle), "0210000043510030");
  EXPECT_EQ(variant.deduction.symbol, 2);
}

}  // namespace
}  // namespace lengthwise::tasks::latin_square
