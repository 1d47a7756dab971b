// Curves in the terminal, drawn with braille dots: two by four of them in a character cell.
#ifndef LENGTHWISE_CLIENT_DISPLAY_CHART_H_
#define LENGTHWISE_CLIENT_DISPLAY_CHART_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/display/terminal_text.h"

namespace lengthwise::client {

struct ChartSeries {
  std::string name;
  // (x, y), ascending x; y from 0 to 1. Points that are not finite leave a gap.
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::vector<ChartSeries> series;
  // Marked by an upright dotted line with the text of `split_labels` left and right of it, below
  // the axis.
  std::optional<double> split;
  std::pair<std::string, std::string> split_labels;
  std::string x_label;
  // What stands at a height from 0 to 1, in at most 5 columns; without it, per cent.
  std::function<std::string(double)> height_label;

  // `width` columns (at least 30) and `height` rows of dots (at least 2), with the axis from 0 to
  // 100 % (or as `height_label` says) on the left, x below and each curve's name at its right end.
  // Without colours curves differ by their dashes; the legend shows them.
  std::string Render(int width, int height, const Palette& palette) const;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_CHART_H_
