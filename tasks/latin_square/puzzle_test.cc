#include "tasks/latin_square/puzzle.h"

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/latin_square/testing/completions.h"

namespace lengthwise::tasks::latin_square {
namespace {

using ::testing::HasSubstr;

TEST(PuzzleTest, IsSixteenDigitsRowByRow) {
  const Puzzle puzzle = ParsePuzzle("5241010024101324").value();
  EXPECT_EQ(puzzle, (Puzzle{5, 2, 4, 1, 0, 1, 0, 0, 2, 4, 1, 0, 1, 3, 2, 4}));
  EXPECT_EQ(FormatPuzzle(puzzle), "5241010024101324");
  EXPECT_EQ(TargetCell(puzzle), 0U);
}

TEST(PuzzleTest, NamesTheMistakeInOtherText) {
  const auto problem = [](absl::string_view text) {
    return std::string(ParsePuzzle(text).status().message());
  };
  EXPECT_THAT(problem("524101002410132"), HasSubstr("15 characters"));
  EXPECT_THAT(problem("5241010024101326"), HasSubstr("character 16"));
  EXPECT_THAT(problem("0241010024101324"), HasSubstr("0 targets"));
  EXPECT_THAT(problem("5241010025101324"), HasSubstr("2 targets"));
  EXPECT_THAT(problem("5242010000100000"), HasSubstr("symbol 2 occurs twice"));
  EXPECT_THAT(problem("5200020000000000"), HasSubstr("symbol 2 occurs twice"));
}

TEST(PuzzleTest, ThereAre576LatinSquares) { EXPECT_EQ(AllLatinSquares().size(), 576U); }

TEST(FeaturesTest, DissimilarityIsJaccards) {
  const auto dissimilarity = [](absl::string_view a, absl::string_view b) {
    return Features(ParsePuzzle(a).value()).DissimilarityTo(Features(ParsePuzzle(b).value()));
  };
  EXPECT_DOUBLE_EQ(dissimilarity("5241010024101324", "5241010024101324"), 0);
  EXPECT_DOUBLE_EQ(dissimilarity("5100000000000000", "0050000000000001"), 1);
  // One feature of three is shared, the target; each puzzle has a clue of its own.
  EXPECT_DOUBLE_EQ(dissimilarity("5100000000000000", "5000000000000001"), 1 - 1.0 / 3);
  // Different values in one cell are two features, none shared.
  EXPECT_DOUBLE_EQ(dissimilarity("5100000000000000", "5200000000000000"), 1 - 1.0 / 3);
  EXPECT_DOUBLE_EQ(dissimilarity("5100000020000000", "0510000020000000"), 1 - 1.0 / 5);
}

}  // namespace
}  // namespace lengthwise::tasks::latin_square
