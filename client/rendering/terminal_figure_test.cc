#include "client/plotting/terminal_figure.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

TEST(TerminalFigureTest, DrawsAccuraciesInPerCent) {
  Figure figure{
      .title = "Accuracy by length: e-1",
      .x = {.label = "input length", .range = {{0.0, 40.0}}},
      .y = {.label = "token accuracy", .ticks = Axis::Ticks::kPercent, .range = {{0.0, 1.0}}}};
  figure.panels.push_back({.title = "Bucket Sort",
                           .series = {{.name = "RoPE", .points = {{1, 1, 1, 1}, {40, 1, 1, 1}}}}});
  figure.panels[0].shaded = {0, 20};
  figure.panels[0].references = {{0.2, "random guess 20 %"}};
  const auto text = RenderFigure(figure, 60, Palette(false));
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("Bucket Sort · token accuracy\n100 % ┤⠉"));
  EXPECT_THAT(*text, HasSubstr(" RoPE\n"));
  EXPECT_THAT(*text, HasSubstr("seen in training   not seen\n"));
  EXPECT_THAT(*text, HasSubstr("random guess 20 %\n"));
}

TEST(TerminalFigureTest, LabelsALogarithmicAxisWithItsValues) {
  Figure figure{.x = {.label = "training step", .range = {{0.0, 10.0}}},
                .y = {.label = "nats", .scale = Axis::Scale::kLog10, .range = {{0.01, 1.0}}}};
  figure.panels.push_back(
      {.series = {{.name = "a", .points = {{0, 1, 1, 1}, {10, 0.01, 0.01, 0.01}}}}});
  const auto text = RenderFigure(figure, 60, Palette(false));
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("\n    1 ┤"));
  EXPECT_THAT(*text, HasSubstr("\n 0.01 ┤"));
}

TEST(TerminalFigureTest, RefusesWhatACharacterCellCannotShow) {
  Figure figure{.kind = "attention"};
  figure.panels.push_back({.map = HeatMap{}});
  EXPECT_THAT(std::string(RenderFigure(figure, 60, Palette(false)).status().message()),
              HasSubstr("a terminal cannot show the figure attention"));
}

}  // namespace
}  // namespace lengthwise::client
