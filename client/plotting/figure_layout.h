// Where everything of a figure goes: no text over text, nothing over data.
#ifndef LENGTHWISE_CLIENT_PLOTTING_FIGURE_LAYOUT_H_
#define LENGTHWISE_CLIENT_PLOTTING_FIGURE_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"

namespace lengthwise::client {

// Heights of text in pixels.
inline constexpr double kTitleText = 18;
inline constexpr double kText = 14;
inline constexpr double kSmallText = 12;

// Of dashed lines, in pixels.
inline constexpr double kDash = 12;
inline constexpr double kDashGap = 6;

// Pixels, from the upper left corner of the picture.
struct Rectangle {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// Text is centred on `y`, or on `x` where it is turned.
struct PlacedText {
  enum class Align { kLeft, kCenter };
  std::string text;
  double x = 0;
  double y = 0;
  double size = kText;
  Align align = Align::kLeft;
  bool upright = false;  // written from bottom to top
};

// A sample of a line, marker or shade between x and x + kLegendSample, with its text to the right.
struct LegendEntry {
  enum class Kind { kSeries, kShade, kReference };
  Kind kind = Kind::kSeries;
  std::string name;
  // The first series of that name; points into the figure.
  const Series* series = nullptr;
  double x = 0;
  double y = 0;
};
// Three dashes of a dashed line and the gaps between them: the marker covers the dash in the
// middle.
inline constexpr double kLegendSample = 3 * kDash + 2 * kDashGap;

struct FigureLayout {
  int width = 0;
  int height = 0;
  // The frames of the panels, in their order.
  std::vector<Rectangle> panels;
  std::vector<PlacedText> texts;
  std::vector<LegendEntry> legend;
  // Of a figure of maps.
  Rectangle color_bar;
};

// `width` and `height` in pixels; 0 stands for what suits the figure. INVALID_ARGUMENT: it does not
// fit; says what it needs. The result points into `figure`.
absl::StatusOr<FigureLayout> LayOut(const Figure& figure, int width, int height);

// About as wide as the text is when drawn, rather more than less.
double TextWidth(const std::string& text, double size);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_FIGURE_LAYOUT_H_
