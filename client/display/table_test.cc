#include "client/display/table.h"

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

Table Example() {
  Table table({{.header = "encoding", .shrinks_to = 5},
               {.header = "1–5", .align = Table::Align::kRight, .rule_before = true},
               {.header = "mean", .align = Table::Align::kRight}});
  table.AddGroup({.header = "seen", .first = 1, .last = 2});
  table.AddRow({"sin_cos", "98.1", "96.5"});
  table.AddRow({"randomized_sin_cos", "100.0", "–"});
  return table;
}

TEST(TableTest, AlignsColumnsUnderAHeaderAndARule) {
  EXPECT_EQ(Example().Render(0, Palette(false)),
            "                   │ seen\n"
            "encoding           │   1–5  mean\n"
            "───────────────────┼────────────\n"
            "sin_cos            │  98.1  96.5\n"
            "randomized_sin_cos │ 100.0     –\n");
}

TEST(TableTest, GroupIsNamedInFullIfThereIsRoom) {
  Table table({{.header = "5", .align = Table::Align::kRight},
               {.header = "10", .align = Table::Align::kRight},
               {.header = "15", .align = Table::Align::kRight, .rule_before = true}});
  table.AddGroup({.header = "seen in training", .first = 0, .last = 1});
  table.AddRow({"1", "2", "3"});
  EXPECT_EQ(table.Render(0, Palette(false)),
            "seen in training │\n"
            "5             10 │ 15\n"
            "─────────────────┼───\n"
            "1              2 │  3\n");
  EXPECT_EQ(table.Render(9, Palette(false)), "seen… │\n5  10 │ 15\n──────┼───\n1   2 │  3\n");
}

TEST(TableTest, ShrinksToTheWidth) {
  EXPECT_EQ(Example().Render(24, Palette(false)),
            "           │ seen\n"
            "encoding   │   1–5  mean\n"
            "───────────┼────────────\n"
            "sin_cos    │  98.1  96.5\n"
            "randomize… │ 100.0     –\n");
}

TEST(TableTest, StopsShrinkingAtTheLeastWidth) {
  EXPECT_EQ(Example().Render(3, Palette(false)),
            "      │ seen\n"
            "enco… │   1–5  mean\n"
            "──────┼────────────\n"
            "sin_… │  98.1  96.5\n"
            "rand… │ 100.0     –\n");
}

TEST(TableTest, ColumnsThatMayGoAreLeftOut) {
  Table table({{.header = "trial", .shrinks_to = 9},
               {.header = "steps", .align = Table::Align::kRight},
               {.header = "worker", .shrinks_to = 4, .may_go = true},
               {.header = "time", .may_go = true}});
  table.AddRow({"task-encoder-seed0", "20", "n07-cpu-1", "0:12"});
  EXPECT_EQ(table.Render(27, Palette(false)),
            "trial      steps  worker\n"
            "───────────────────────────\n"
            "task-enc…     20  n07-cpu-1\n");
  EXPECT_EQ(table.Render(16, Palette(false)),
            "trial      steps\n"
            "────────────────\n"
            "task-enc…     20\n");
}

TEST(TableTest, ColoursEncloseOnlyTheText) {
  Table table({{.header = "a"}, {.header = "b"}});
  table.AddRow({Table::Cell("x", Paint::kRed), "y"});
  EXPECT_EQ(table.Render(0, Palette(true)),
            "\x1b[1ma\x1b[0m  \x1b[1mb\x1b[0m\n\x1b[2m────\x1b[0m\n\x1b[31mx\x1b[0m  y\n");
}

}  // namespace
}  // namespace lengthwise::client
