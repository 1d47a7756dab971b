#include "client/display/chart.h"

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(ChartTest, DrawsNothingWithoutPoints) { EXPECT_EQ(Chart().Render(60, 5, Palette(false)), ""); }

TEST(ChartTest, DrawsALevelCurveAtItsHeight) {
  Chart chart;
  chart.series = {{.name = "a", .points = {{1, 1.0}, {10, 1.0}}}};
  chart.x_label = "length";
  EXPECT_EQ(chart.Render(30, 3, Palette(false)),
            "100 % ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉ a\n"
            " 50 % ┤\n"
            "  0 % ┤\n"
            "      └─────────────────────\n"
            "       1   3      6    8  10 length\n");
}

TEST(ChartTest, MarksTheSplit) {
  Chart chart;
  chart.series = {{.name = "b", .points = {{1, 0.0}, {40, 0.0}}}};
  chart.split = 20;
  chart.split_labels = {"seen", "unseen"};
  EXPECT_EQ(chart.Render(30, 2, Palette(false)),
            "100 % ┤          ┊\n"
            "  0 % ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀ b\n"
            "      └──────────┴──────────\n"
            "       1    11   20   30  40\n"
            "            seen   unseen\n");
}

TEST(ChartTest, KeepsNamesOfEqualCurvesApart) {
  Chart chart;
  chart.series = {{.name = "first", .points = {{1, 1.0}, {9, 1.0}}},
                  {.name = "second", .points = {{1, 1.0}, {9, 1.0}}}};
  const std::string text = chart.Render(40, 4, Palette(false));
  EXPECT_NE(text.find(" first\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" second\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace lengthwise::client
