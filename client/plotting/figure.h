// What a picture shows, before anybody draws it: panels in a grid, each with curves or one map.
#ifndef LENGTHWISE_CLIENT_PLOTTING_FIGURE_H_
#define LENGTHWISE_CLIENT_PLOTTING_FIGURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lengthwise::client {

// How a series is told from others: by colour, and without colours by marker and dashes.
struct SeriesStyle {
  int color = 0;  // index into a palette that colour-blind readers can tell apart
  int marker = 0;
  bool dashed = false;
  bool operator==(const SeriesStyle&) const = default;
};

// Colours of that palette.
inline constexpr int kSeriesColors = 7;

// The style of the series of this number, from 0: a colour and a marker each, and dashed where the
// colours are used up, so that no two of the first fourteen look alike.
inline SeriesStyle NumberedStyle(int number) {
  return {.color = number, .marker = number, .dashed = number / kSeriesColors % 2 == 1};
}

struct SeriesPoint {
  double x = 0;
  double y = 0;
  // The band around a line; equal to y where there is none.
  double low = 0;
  double high = 0;
};

struct Series {
  enum class Kind {
    kLine,     // with markers on some of its points, and a band
    kScatter,  // markers alone
  };
  // In the legend; empty: not in it. Series of one name have one style, in all panels.
  std::string name;
  Kind kind = Kind::kLine;
  SeriesStyle style;
  // Faint series lie behind the others; faint lines are thin and without markers.
  bool faint = false;
  // Lines: ascending x.
  std::vector<SeriesPoint> points;
};

// A square matrix; row 0 is on top.
struct HeatMap {
  int size = 0;
  // size * size, row by row.
  std::vector<float> values;
  // Rows and columns stand for this many tokens each, the last one perhaps for fewer.
  int tokens_per_cell = 1;
  int tokens = 0;
  // The first output token; a line is drawn before it, across and down.
  int first_output = 0;
};

struct Axis {
  enum class Scale { kLinear, kLog10, kLog2 };
  enum class Ticks { kNumbers, kCounts, kPercent, kNone };
  std::string label;
  Scale scale = Scale::kLinear;
  // kCounts: of whole numbers, with no ticks between them. kPercent: values from 0 to 1, written in
  // per cent.
  Ticks ticks = Ticks::kNumbers;
  // Absent: each panel shows what it has.
  std::optional<std::pair<double, double>> range;
};

// A level line across a panel.
struct Reference {
  double y = 0;
  std::string label;  // "random guess 20 %"
};

struct Panel {
  std::string title;
  std::vector<Series> series;
  std::optional<HeatMap> map;
  // Shaded part of the x axis.
  std::optional<std::pair<double, double>> shaded;
  std::vector<Reference> references;
};

struct Figure {
  // What kind it is: "accuracy_by_length".
  std::string kind;
  std::string title;
  // Below everything, in small print: what was averaged, what was left out.
  std::string caption;
  // Behind it, where bands are drawn: what they are.
  std::string band_caption;
  Axis x;
  Axis y;
  int columns = 1;
  // Row by row.
  std::vector<Panel> panels;
  // One a row of the grid, left of it; or none at all.
  std::vector<std::string> row_titles;
  // What `shaded` means: "lengths seen in training".
  std::string shaded_label;
  // Maps: the value at the bright end of the colours (the dark end is 0), and what is shown.
  double map_maximum = 1;
  std::string map_label;

  bool has_maps() const { return !panels.empty() && panels[0].map.has_value(); }
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_FIGURE_H_
