#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {
namespace {

using ::testing::HasSubstr;

std::string Problem(absl::string_view text) {
  return std::string(ParsePuzzleFile(text, "set.json").status().message());
}

TEST(PuzzleFileTest, ReadsPuzzlesAndIgnoresOtherKeys) {
  const auto puzzles = ParsePuzzleFile(
      R"({"what": "two", "puzzles": [
        {"id": 0, "puzzle": "0040405210200030", "solution": 1, "vectors": 1,
         "human_accuracy": 0.975},
        {"puzzle": "0504200302303000"}]})",
      "set.json");
  ASSERT_TRUE(puzzles.ok()) << puzzles.status();
  ASSERT_EQ(puzzles->size(), 2U);
  EXPECT_EQ(FormatPuzzle((*puzzles)[0].puzzle), "0040405210200030");
  EXPECT_EQ((*puzzles)[0].deduction.symbol, 1);
  EXPECT_EQ((*puzzles)[1].deduction, (Deduction{3, 3}));
}

TEST(PuzzleFileTest, ReadsListsByCondition) {
  const auto puzzles = ParsePuzzleFile(
      R"({"binary": [["2000500234001000", 4]], "quaternary": [["0504200302303000", 3]]})",
      "set.json");
  ASSERT_TRUE(puzzles.ok()) << puzzles.status();
  ASSERT_EQ(puzzles->size(), 2U);
  EXPECT_EQ((*puzzles)[0].deduction.vectors, 1);
  EXPECT_EQ((*puzzles)[1].deduction.vectors, 3);
}

TEST(PuzzleFileTest, ErrorsNameFileAndPlace) {
  EXPECT_THAT(Problem("[]"), HasSubstr("set.json is not a JSON object"));
  EXPECT_THAT(Problem(R"({"puzzles")"), HasSubstr("set.json is not a JSON object"));
  EXPECT_THAT(Problem(R"({"puzzles": {}})"), HasSubstr("set.json has no puzzles"));
  EXPECT_THAT(Problem(R"({"puzzles": [{"puzzle": "0040405210200030"}, 7]})"),
              HasSubstr("set.json: puzzles[1]: \"puzzle\" is missing"));
  EXPECT_THAT(Problem(R"({"ternary": [["123", 4]]})"), HasSubstr("ternary[0]: \"123\""));
  EXPECT_THAT(Problem(R"({"binary": [["2000500234001000"]]})"), HasSubstr("\"puzzle\" is missing"));
}

TEST(PuzzleFileTest, RefusesContradictions) {
  EXPECT_THAT(Problem(R"({"binary": [["2000500234001000", 3]]})"), HasSubstr("is 4, not 3"));
  EXPECT_THAT(Problem(R"({"ternary": [["2000500234001000", 4]]})"),
              HasSubstr("a condition of 1 vectors, not 2"));
  EXPECT_THAT(Problem(R"({"puzzles": [{"puzzle": "2000500234001000", "vectors": "one"}]})"),
              HasSubstr("not 0"));
  EXPECT_THAT(Problem(R"({"puzzles": [{"puzzle": "5000000000000000"}]})"),
              HasSubstr("no rule of one, two or three vectors"));
  EXPECT_THAT(Problem(R"({"binary": [["2000500234001000", 4], ["2000500234001000", 4]]})"),
              HasSubstr("binary[1]: 2000500234001000 occurs twice"));
}

TEST(PuzzleFileTest, AbsentFileIsNotFound) {
  const auto puzzles = ReadPuzzleFile("/nowhere/puzzles.json");
  EXPECT_EQ(puzzles.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(puzzles.status().message()), HasSubstr("/nowhere/puzzles.json"));
}

TEST(PuzzleFileTest, EndlessFilesAreNotRead) {
  for (const char* path : {"/dev/zero", "/"}) {
    EXPECT_EQ(ReadPuzzleFile(path).status().code(), absl::StatusCode::kFailedPrecondition) << path;
  }
}

}  // namespace
}  // namespace lengthwise::tasks::latin_square
