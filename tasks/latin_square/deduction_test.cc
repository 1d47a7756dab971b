#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/latin_square/generator.h"
#include "tasks/latin_square/puzzle.h"
#include "tasks/latin_square/testing/completions.h"

namespace lengthwise::tasks::latin_square {
namespace {

std::optional<Deduction> Of(absl::string_view text) { return Deduce(ParsePuzzle(text).value()); }

TEST(DeductionTest, OneVectorSettlesARowOrColumn) {
  EXPECT_EQ(Of("5124"
               "0000"
               "0000"
               "0000"),
            (Deduction{1, 3}));
  EXPECT_EQ(Of("5000"
               "4000"
               "2000"
               "3000"),
            (Deduction{1, 1}));
  // The row is tried first.
  EXPECT_EQ(Of("5124"
               "1000"
               "2000"
               "4000"),
            (Deduction{1, 3}));
}

TEST(DeductionTest, TwoVectorsRelateRowAndColumn) {
  EXPECT_EQ(Of("0000"
               "0500"
               "0000"
               "0000"),
            std::nullopt);
  EXPECT_EQ(Of("0400"
               "2503"
               "0000"
               "0000"),
            (Deduction{2, 1}));
  EXPECT_EQ(Of("0400"
               "2500"
               "0300"
               "0000"),
            (Deduction{2, 1}));
}

TEST(DeductionTest, ThreeVectorsRelateCrossingLines) {
  // Row 1 has the clue 1; both columns of its blanks have a 2.
  EXPECT_EQ(Of("1500"
               "0020"
               "0002"
               "0000"),
            (Deduction{3, 2}));
  EXPECT_EQ(Of("5000"
               "0300"
               "0030"
               "0003"),
            (Deduction{3, 3}));
  EXPECT_EQ(Of("1000"
               "5000"
               "0200"
               "0020"),
            (Deduction{3, 2}));
  EXPECT_EQ(Of("5000"
               "0400"
               "0040"
               "0004"),
            (Deduction{3, 4}));
  EXPECT_EQ(Of("5001"
               "0300"
               "0030"
               "3000"),
            std::nullopt)
      << "the target's own column holds the 3 already";
}

TEST(DeductionTest, ColumnIsTriedAfterTheRow) {
  // First puzzle: the columns of the row's two blanks hold 3, so the row settles the target. Second
  // puzzle: no rule covers a row with two clues and one blank, but the three other rows hold 3.
  EXPECT_EQ(Of("5400"
               "0300"
               "0030"
               "0003"),
            (Deduction{3, 3}));
  EXPECT_EQ(Of("5120"
               "0300"
               "0030"
               "0003"),
            (Deduction{3, 3}));
}

TEST(DeductionTest, TwoCluesAndOneBlankMatchNoRule) {
  // It is 3 or 4, and the blank's column has a 3, so it is 3: an argument longer than any rule.
  const Puzzle puzzle = ParsePuzzle(
                            "5120"
                            "0003"
                            "0000"
                            "0000")
                            .value();
  EXPECT_EQ(Complete(puzzle).target_symbols, std::set<int>{3});
  EXPECT_EQ(Deduce(puzzle), std::nullopt);
}

// A deduced symbol must occur in every full square that completes the clues. The puzzles have few
// and many clues; rules settle some of them.
TEST(DeductionTest, DeducedSymbolIsTheOnlyPossibleOne) {
  std::array<int, 4> found = {};
  for (uint64_t i = 0; i < 20000; ++i) {
    random::Stream stream(3, random::Purpose::kPreview, i);
    Puzzle puzzle = DrawLatinSquare(stream);
    const auto blanks = stream.Between(1, 15);
    for (const int64_t cell : random::SampleWithoutReplacement(stream, kCells, blanks, false)) {
      const bool first = std::find(puzzle.begin(), puzzle.end(), kTarget) == puzzle.end();
      puzzle[static_cast<size_t>(cell)] = first ? kTarget : kBlank;
    }
    const std::optional<Deduction> deduction = Deduce(puzzle);
    ++found.at(deduction ? static_cast<size_t>(deduction->vectors) : 0);
    if (deduction) {
      ASSERT_EQ(Complete(puzzle).target_symbols, std::set<int>{deduction->symbol})
          << FormatPuzzle(puzzle);
    }
  }
  for (const int count : found) EXPECT_GT(count, 1000);
}

// Rotating or mirroring a puzzle and renaming its symbols keeps its condition.
TEST(DeductionTest, SymmetriesKeepTheCondition) {
  for (uint64_t i = 0; i < 3000; ++i) {
    random::Stream stream(4, random::Purpose::kPreview, i);
    const Puzzle drawn = DrawPuzzle({}, stream);
    const std::optional<Deduction> deduction = Deduce(drawn);
    if (!deduction) continue;
    Puzzle mirrored = {};
    for (size_t cell = 0; cell < kCells; ++cell) {
      const uint8_t value = drawn[cell];
      mirrored[cell % kSide * kSide + cell / kSide] =
          value >= 1 && value <= 4 ? static_cast<uint8_t>(value % 4 + 1) : value;
    }
    const std::optional<Deduction> other = Deduce(mirrored);
    ASSERT_TRUE(other.has_value()) << FormatPuzzle(drawn);
    EXPECT_EQ(other->vectors, deduction->vectors);
    EXPECT_EQ(other->symbol, deduction->symbol % 4 + 1);
  }
}

}  // namespace
}  // namespace lengthwise::tasks::latin_square
