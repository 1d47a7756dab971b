#include "client/plotting/figure_layout.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

Figure Grid(int panels, int columns) {
  Figure figure{.title = "A title",
                .caption = "Some words about what was averaged and what was left out of it.",
                .x = {.label = "input length", .range = {{0.0, 500.0}}},
                .y = {.label = "accuracy", .ticks = Axis::Ticks::kPercent, .range = {{0.0, 1.0}}},
                .columns = columns,
                .shaded_label = "lengths seen in training"};
  for (int i = 0; i < panels; ++i) {
    Panel panel{.title = absl::StrCat("Task ", i)};
    for (int s = 0; s < 11; ++s) {
      panel.series.push_back({.name = absl::StrCat("Randomized encoding ", s)});
    }
    panel.shaded = {0, 40};
    panel.references = {{0.5, "random guess 50 %"}};
    figure.panels.push_back(panel);
  }
  return figure;
}

Rectangle Box(const PlacedText& text) {
  double width = TextWidth(text.text, text.size);
  double height = text.size;
  if (text.upright) std::swap(width, height);
  const bool from_left = text.align == PlacedText::Align::kLeft && !text.upright;
  return {from_left ? text.x : text.x - width / 2, text.y - height / 2, width, height};
}

bool Overlap(const Rectangle& a, const Rectangle& b) {
  return a.left < b.right() && b.left < a.right() && a.top < b.bottom() && b.top < a.bottom();
}

std::vector<Rectangle> Everything(const FigureLayout& layout) {
  std::vector<Rectangle> boxes = layout.panels;
  for (const PlacedText& text : layout.texts) boxes.push_back(Box(text));
  for (const LegendEntry& entry : layout.legend) {
    boxes.push_back(
        {entry.x, entry.y - kText / 2, kLegendSample + TextWidth(entry.name, kText), kText});
  }
  return boxes;
}

class FigureLayoutTest : public testing::TestWithParam<int> {};

TEST_P(FigureLayoutTest, NothingLiesOverAnythingOrOutside) {
  const Figure figure = Grid(GetParam(), GetParam() == 1 ? 1 : 4);
  const auto layout = LayOut(figure, 0, 0);
  ASSERT_TRUE(layout.ok());
  const std::vector<Rectangle> boxes = Everything(*layout);
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].left, 0);
    EXPECT_GE(boxes[i].top, 0);
    EXPECT_LE(boxes[i].right(), layout->width) << i;
    EXPECT_LE(boxes[i].bottom(), layout->height) << i;
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(Overlap(boxes[i], boxes[j])) << i << " " << j;
  }
}

INSTANTIATE_TEST_SUITE_P(Panels, FigureLayoutTest, testing::Values(1, 4, 15));

TEST(FigureLayoutTest, TheLegendHasEachNameOnce) {
  const Figure figure = Grid(4, 2);
  const auto layout = LayOut(figure, 0, 0);
  ASSERT_TRUE(layout.ok());
  // 11 series, the shade and the guess.
  EXPECT_EQ(layout->legend.size(), 13u);
}

TEST(FigureLayoutTest, ASinglePanelSaysShadeAndGuessInPlace) {
  const Figure figure = Grid(1, 1);
  const auto layout = LayOut(figure, 0, 0);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->legend.size(), 11u);
  // Room for the guess's label right of the frame.
  EXPECT_GE(layout->width - layout->panels[0].right(), TextWidth("random guess 50 %", kSmallText));
}

TEST(FigureLayoutTest, KeepsTheAskedSize) {
  const Figure figure = Grid(4, 2);
  const auto layout = LayOut(figure, 1000, 800);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->width, 1000);
  EXPECT_EQ(layout->height, 800);
  EXPECT_LE(layout->panels[3].bottom(), 800);
}

TEST(FigureLayoutTest, MapsAreSquare) {
  Figure figure{.columns = 2};
  figure.panels.resize(2);
  for (Panel& panel : figure.panels) panel.map = HeatMap{.size = 1, .values = {1}, .tokens = 1};
  const auto layout = LayOut(figure, 900, 300);
  ASSERT_TRUE(layout.ok());
  EXPECT_DOUBLE_EQ(layout->panels[0].width, layout->panels[0].height);
  EXPECT_GT(layout->color_bar.left, layout->panels[1].right());
}

TEST(FigureLayoutTest, SaysWhatAFigureThatDoesNotFitNeeds) {
  const Figure figure = Grid(15, 4);
  EXPECT_THAT(std::string(LayOut(figure, 300, 0).status().message()),
              HasSubstr("it needs at least "));
  EXPECT_THAT(std::string(LayOut(figure, 0, 200).status().message()),
              HasSubstr("leave --width and --height out"));
}

TEST(FigureLayoutTest, TheLegendShowsAGapOfADashedLineBesideItsMarker) {
  constexpr double kMarkerRadius = 6;  // of gnuplot's circle at size 0.9
  EXPECT_LE(kDash + kDashGap, kLegendSample / 2 - kMarkerRadius);
}

}  // namespace
}  // namespace lengthwise::client
