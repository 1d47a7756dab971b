// Draws curves and the figures of `lengthwise plot` in the terminal with braille dots, two by four
// in a character cell.
#ifndef LENGTHWISE_CLIENT_DISPLAY_CHART_H_
#define LENGTHWISE_CLIENT_DISPLAY_CHART_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/display/terminal.h"

namespace lengthwise::client {

struct ChartSeries {
  std::string name;
  // (x, y), ascending x; y from 0 to 1. Points that are not finite leave a gap.
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::vector<ChartSeries> series;
  // x of a vertical dotted line. The texts of `split_labels` stand left and right of it, below the
  // axis.
  std::optional<double> split;
  std::pair<std::string, std::string> split_labels;
  std::string x_label;
  // Axis label of a height from 0 to 1, at most 5 columns wide. Default: per cent.
  std::function<std::string(double)> height_label;

  // Draws `width` columns (at least 30) and `height` rows of characters (at least 2). The y axis, 0
  // to 100 % or labelled by `height_label`, is on the left, x below, and each curve's name at its
  // right end. Without colours curves differ by their dashes, which the legend shows.
  std::string Render(int width, int height, const Palette& palette) const;
};

// Draws a figure's panels one below the other in `width` columns, without bands. `figure` is the
// JSON of python/lengthwise/plots/numbers.py. INVALID_ARGUMENT for figures other than lines over a
// linear x axis; INTERNAL for text that is not such JSON.
absl::StatusOr<std::string> RenderFigure(const std::string& figure, int width,
                                         const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_CHART_H_
