#include "client/rendering/table.h"

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

TEST(TableTest, ColoursGoRoundTheTextAlone) {
  Table table({{.header = "a"}, {.header = "b"}});
  table.AddRow({Table::Cell("x", Paint::kRed), "y"});
  EXPECT_EQ(table.Render(0, Palette(true)),
            "\x1b[1ma\x1b[0m  \x1b[1mb\x1b[0m\n\x1b[2m────\x1b[0m\n\x1b[31mx\x1b[0m  y\n");
}

}  // namespace
}  // namespace lengthwise::client
