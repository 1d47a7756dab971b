#include "client/display/chart.h"

#include "gmock/gmock.h"
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

using ::testing::HasSubstr;

TEST(ChartTest, CutNamesDiffer) {
  Chart chart;
  chart.series = {{.name = "even_pairs randomized_relative", .points = {{1, 1.0}, {9, 1.0}}},
                  {.name = "even_pairs randomized_sin_cos", .points = {{1, 0.5}, {9, 0.5}}},
                  {.name = "é, short", .points = {{1, 0.0}, {9, 0.0}}}};
  const std::string text = chart.Render(48, 4, Palette(false));
  EXPECT_THAT(text, testing::HasSubstr(" …omized_relative\n"));
  EXPECT_THAT(text, testing::HasSubstr(" …domized_sin_cos\n"));
  EXPECT_THAT(text, testing::HasSubstr(" é, short\n"));
  // If their beginnings differ, these are shown.
  chart.series[0].name = "bucket_sort randomized_relative";
  EXPECT_THAT(chart.Render(48, 4, Palette(false)), testing::HasSubstr(" bucket_sort ran…\n"));
}

TEST(TerminalFigureTest, DrawsAccuraciesInPerCent) {
  const auto text = RenderFigure(
      R"({"kind": "accuracy_by_length", "title": "Accuracy by length: e-1", "caption": "",
          "shaded_label": "seen in training: lengths 1 to 20",
          "x": {"label": "input length", "scale": "linear", "ticks": "counts", "range": [0, 40]},
          "y": {"label": "token accuracy", "scale": "linear", "ticks": "percent", "range": [0, 1]},
          "panels": [{"title": "Bucket Sort", "shaded": [0, 20],
                      "references": [{"y": 0.2, "label": "random guess 20 %"}],
                      "series": [{"name": "", "kind": "line", "faint": true, "x": [1], "y": [0]},
                                 {"name": "RoPE", "kind": "line", "faint": false, "x": [1, 40],
                                  "y": [1, 1]}]}]})",
      60, Palette(false));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Bucket Sort · token accuracy\n100 % ┤⠉"));
  EXPECT_THAT(*text, HasSubstr(" RoPE\n"));
  EXPECT_THAT(*text, HasSubstr("seen in training   not seen\n"));
  EXPECT_THAT(*text, HasSubstr("random guess 20 %\n"));
}

TEST(TerminalFigureTest, LengthsThatCountAsSeenAreNotCalledTrained) {
  const auto text = RenderFigure(
      R"({"kind": "accuracy_by_length", "title": "", "caption": "",
          "shaded_label": "lengths that count as seen",
          "x": {"label": "input length", "scale": "linear", "ticks": "counts", "range": [0, 40]},
          "y": {"label": "token accuracy", "scale": "linear", "ticks": "percent", "range": [0, 1]},
          "panels": [{"title": "", "shaded": [0, 20], "references": [],
                      "series": [{"name": "RoPE", "kind": "line", "faint": false, "x": [1, 40],
                                  "y": [1, 1]}]}]})",
      60, Palette(false));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("up to 20   above 20\n"));
}

TEST(TerminalFigureTest, PerCentAreThoseOfTheValues) {
  const auto text = RenderFigure(
      R"({"kind": "error_places", "title": "", "caption": "",
          "x": {"label": "place", "scale": "linear", "ticks": "counts", "range": [0, 10]},
          "y": {"label": "answers wrong at it", "scale": "linear", "ticks": "percent",
                "range": [0, 0.02]},
          "panels": [{"title": "", "shaded": null, "references": [],
                      "series": [{"name": "a", "kind": "line", "faint": false, "x": [0, 5, 10],
                                  "y": [0, null, 0.02]}]}]})",
      60, Palette(false));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("\n   2% ┤"));
  EXPECT_THAT(*text, HasSubstr("\n  0 % ┤"));
}

TEST(TerminalFigureTest, LabelsALogarithmicAxisWithItsValues) {
  const auto text = RenderFigure(
      R"({"kind": "loss", "title": "", "caption": "",
          "x": {"label": "training step", "scale": "linear", "ticks": "numbers", "range": [0, 10]},
          "y": {"label": "nats", "scale": "log10", "ticks": "numbers", "range": [0.01, 1]},
          "panels": [{"title": "", "shaded": null, "references": [],
                      "series": [{"name": "a", "kind": "line", "faint": false, "x": [0, 10],
                                  "y": [1, 0.01]}]}]})",
      60, Palette(false));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("\n    1 ┤"));
  EXPECT_THAT(*text, HasSubstr("\n 0.01 ┤"));
}

TEST(TerminalFigureTest, RejectsUnsupportedFigures) {
  const auto text = RenderFigure(
      R"({"kind": "attention", "title": "", "caption": "",
          "x": {"label": "", "scale": "linear", "ticks": "counts", "range": null},
          "panels": [{"title": "", "shaded": null, "references": [], "series": []}]})",
      60, Palette(false));
  EXPECT_THAT(std::string(text.status().message()),
              HasSubstr("a terminal cannot show the figure attention"));
}

TEST(TerminalFigureTest, RejectsTextThatIsNoFigure) {
  EXPECT_EQ(RenderFigure("{", 60, Palette(false)).status().code(), absl::StatusCode::kInternal);
}

}  // namespace

}  // namespace lengthwise::client
