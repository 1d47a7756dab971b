#include "client/comparison/comparison_display.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two levels, two encodings; one cell was not run.
ComparisonDocument Document() {
  PublishedTable table;
  table.key = "p/table_1";
  table.citation = "Doe 2020 (X), A title";
  table.table = "Table 1";
  table.aggregation = "the best of 30";
  table.columns = {{.key = "none", .label = "None", .encoding = "none"},
                   {.key = "rope", .label = "RoPE & co", .encoding = "rope"}};
  table.rows = {
      {.task = "even_pairs", .label = "Even Pairs", .level = "R"},
      {.task = "bucket_sort", .label = "Bucket Sort", .level = "CS", .permutation_invariant = true},
      {.task = "odds_first", .label = "Odds First", .level = "CS"}};
  Comparison comparison{.table = table, .cells_run = 3, .cell_count = 6, .counted = 3};
  comparison.cells.assign(3, std::vector<ComparisonCell>(2));
  comparison.cells[0][0] = {.measured = Measurement{50.34, std::nullopt, 1},
                            .published = PublishedValue{50.4, std::nullopt}};
  comparison.cells[0][1] = {.measured = Measurement{87.81, std::nullopt, 1},
                            .published = PublishedValue{60.0, 1.5},
                            .best_measured = true,
                            .best_published = true};
  comparison.cells[1][0] = {.measured = Measurement{27.2, 0.25, 2}, .published = std::nullopt};
  comparison.cells[1][1] = {.measured = std::nullopt, .published = PublishedValue{30, 2}};
  return {.experiment = "e-1", .comparison = comparison, .differences = {{"steps", "10", "20"}}};
}

TEST(ComparisonDisplayTest, TheTerminalShowsBothNumbersAndTheirDifference) {
  std::ostringstream out;
  WriteTerminal(Document(), 100, Palette(false), out);
  EXPECT_THAT(
      out.str(),
      HasSubstr("                     │ None                     │ RoPE & co\n"
                "level  task          │        here  paper     Δ │  here        paper      Δ\n"
                "─────────────────────┼──────────────────────────┼──────────────────────────\n"
                "R      Even Pairs    │       50.3   50.4   −0.1 │ 87.8*  60.0 ± 1.5*  +27.8\n"
                "─────────────────────┼──────────────────────────┼──────────────────────────\n"
                "CS     Bucket Sort † │ 27.2 ± 0.2               │        30.0 ± 2.0\n"));
  EXPECT_THAT(out.str(), HasSubstr("3 of 6 cells run; rows not run: Odds First"));
  EXPECT_THAT(out.str(), HasSubstr("steps 10 (paper: 20)"));
}

TEST(ComparisonDisplayTest, TasksWithoutLevelsHaveNoColumnForThem) {
  ComparisonDocument document = Document();
  for (PublishedRow& row : document.comparison.table.rows) row.level = "";
  std::ostringstream terminal, markdown;
  WriteTerminal(document, 100, Palette(false), terminal);
  EXPECT_THAT(terminal.str(), HasSubstr("\ntask          │ "));
  EXPECT_THAT(terminal.str(), HasSubstr("\nEven Pairs    │ "));
  WriteMarkdown(document, markdown);
  EXPECT_THAT(markdown.str(), HasSubstr("| Even Pairs | 50.3 / 50.4 / −0.1 |"));
}

TEST(ComparisonDisplayTest, ANarrowTerminalGetsAsManyTablesAsItTakes) {
  std::ostringstream out;
  WriteTerminal(Document(), 60, Palette(false), out);
  EXPECT_THAT(out.str(), HasSubstr("│ None\n"));
  EXPECT_THAT(out.str(), HasSubstr("│ RoPE & co\n"));
}

TEST(ComparisonDisplayTest, TheWholeTableHasRowsOfWhichNothingWasRun) {
  ComparisonDocument document = Document();
  std::ostringstream part;
  WriteMarkdown(document, part);
  EXPECT_THAT(part.str(), Not(HasSubstr("| Odds First |")));
  document.whole_table = true;
  std::ostringstream whole;
  WriteMarkdown(document, whole);
  EXPECT_THAT(whole.str(), HasSubstr("|  | Odds First |  |  |\n"));
}

TEST(ComparisonDisplayTest, MarkdownMarksTheBestOfARow) {
  std::ostringstream out;
  WriteMarkdown(Document(), out);
  EXPECT_THAT(out.str(), HasSubstr("| R | Even Pairs | 50.3 / 50.4 / −0.1 | "
                                   "**87.8 / 60.0 ± 1.5 / +27.8** |\n"));
}

TEST(ComparisonDisplayTest, LatexUsesBooktabsAndEscapes) {
  std::ostringstream out;
  WriteLatex(Document(), out);
  EXPECT_THAT(out.str(), HasSubstr("\\multicolumn{3}{c}{None} & \\multicolumn{3}{c}{RoPE \\& co}"));
  EXPECT_THAT(out.str(), HasSubstr("\\cmidrule(lr){3-5} \\cmidrule(lr){6-8}\n"));
  EXPECT_THAT(out.str(), HasSubstr("R & Even Pairs & 50.3 & 50.4 & $-$0.1 & \\textbf{87.8} & "
                                   "\\textbf{60.0 $\\pm$ 1.5} & +27.8 \\\\\n\\midrule\nCS & Bucket "
                                   "Sort $^\\dagger$ &"));
}

TEST(ComparisonDisplayTest, JsonHasEveryCellAndNullsWhereNothingWasRun) {
  std::ostringstream out;
  WriteComparisonJson(Document(), out);
  const nlohmann::json json = nlohmann::json::parse(out.str());
  ASSERT_EQ(json["cells"].size(), 6u);
  EXPECT_EQ(json["cells_run"], 3);
  EXPECT_EQ(json["cells"][1]["measured"], 87.81);
  EXPECT_EQ(json["cells"][1]["difference"], 27.8);
  EXPECT_TRUE(json["cells"][3]["measured"].is_null());
  EXPECT_EQ(json["cells"][3]["published"], 30.0);
  EXPECT_EQ(json["differences"][0]["here"], "10");
}

}  // namespace
}  // namespace lengthwise::client
