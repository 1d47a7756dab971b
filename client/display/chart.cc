#include "client/display/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace lengthwise::client {
namespace {

// Dash patterns by series: solid, dashed, dotted, dash-dotted.
bool DotIsOn(int series, int dot) {
  static constexpr uint16_t kPatterns[] = {0xFFFF, 0x3F3F, 0x5555, 0x1CFF};
  return kPatterns[series % 4] >> (dot % 16) & 1;
}

// Returns the bit of a braille character (U+2800 + bits) for the dot in column 0..1 and row 0..3.
uint8_t DotBit(int column, int row) {
  static constexpr uint8_t kBits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  return kBits[column][row];
}

std::string Braille(uint8_t bits) {
  return {static_cast<char>(0xE2), static_cast<char>(0xA0 | bits >> 6),
          static_cast<char>(0x80 | (bits & 0x3F))};
}

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        bits_(static_cast<size_t>(columns) * rows),
        owner_(bits_.size(), -1) {}

  int dot_columns() const { return 2 * columns_; }
  int dot_rows() const { return 4 * rows_; }

  void Set(int x, int y, int series) {
    if (x < 0 || y < 0 || x >= dot_columns() || y >= dot_rows()) return;
    const int cell = y / 4 * columns_ + x / 2;
    bits_[cell] |= DotBit(x % 2, y % 4);
    owner_[cell] = series;
  }

  void Line(int x0, int y0, int x1, int y1, int series, int& dots) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      if (i > 0 || dots == 0) ++dots;
      if (DotIsOn(series, dots)) {
        Set(static_cast<int>(std::lround(x0 + t * (x1 - x0))),
            static_cast<int>(std::lround(y0 + t * (y1 - y0))), series);
      }
    }
  }

  std::string Cell(int column, int row, bool on_split, const Palette& palette) const {
    const int cell = row * columns_ + column;
    if (bits_[cell] == 0) return on_split ? palette(Paint::kDim, "┊") : " ";
    return palette(SeriesPaint(owner_[cell]), Braille(bits_[cell]));
  }

 private:
  int columns_;
  int rows_;
  std::vector<uint8_t> bits_;
  std::vector<int> owner_;
};

// Puts text into a line of spaces and keeps it inside the line. Returns false if it would touch
// other text.
bool Place(std::string& line, const std::string& text, int at) {
  at = std::clamp(at, 0, std::max(0, static_cast<int>(line.size() - text.size())));
  const int from = std::max(0, at - 1);
  const int to = std::min<int>(line.size(), at + text.size() + 1);
  if (line.substr(from, to - from).find_first_not_of(' ') != std::string::npos) return false;
  line.replace(at, text.size(), text);
  return true;
}

// Cuts names to `width` columns. If two would look alike, they are cut in front: names end with
// what differs, such as the encoding.
std::vector<std::string> CutNames(const std::vector<ChartSeries>& series, int width) {
  std::vector<std::string> names;
  std::set<std::string> distinct;
  for (const ChartSeries& one : series) {
    distinct.insert(names.emplace_back(Truncate(one.name, width)));
  }
  if (distinct.size() == names.size()) return names;
  for (size_t s = 0; s < series.size(); ++s) {
    absl::string_view end = series[s].name;
    if (DisplayWidth(end) <= width) continue;
    // Drops whole characters: the other bytes of one begin with the bits 10.
    while (!end.empty() && (DisplayWidth(end) > width - 1 || (end[0] & 0xC0) == 0x80)) {
      end.remove_prefix(1);
    }
    names[s] = absl::StrCat("…", end);
  }
  return names;
}

}  // namespace

std::string Chart::Render(int width, int height, const Palette& palette) const {
  constexpr int kAxis = 6;  // "100 % ┤" without the tick
  int names_width = 0;
  double lowest = HUGE_VAL;
  double highest = -HUGE_VAL;
  for (const ChartSeries& one : series) {
    names_width = std::max(names_width, DisplayWidth(one.name));
    for (const auto& [x, y] : one.points) {
      lowest = std::min(lowest, x);
      highest = std::max(highest, x);
    }
  }
  if (lowest > highest) return "";
  if (highest == lowest) highest = lowest + 1;
  names_width = std::min(names_width, width / 3);
  const std::vector<std::string> names = CutNames(series, names_width);
  const int columns = std::max(10, std::max(width, 30) - kAxis - 1 - names_width - 1);
  const int rows = std::max(height, 2);
  Canvas canvas(columns, rows);
  const auto x_of = [&](double x) {
    return static_cast<int>(
        std::lround((x - lowest) / (highest - lowest) * (canvas.dot_columns() - 1)));
  };
  const auto y_of = [&](double y) {
    return static_cast<int>(std::lround((1 - std::clamp(y, 0.0, 1.0)) * (canvas.dot_rows() - 1)));
  };

  std::vector<int> name_of_row(rows, -1);
  for (size_t s = 0; s < series.size(); ++s) {
    int dots = 0;
    const std::pair<double, double>* previous = nullptr;
    for (const auto& point : series[s].points) {
      if (!std::isfinite(point.second)) {
        previous = nullptr;
        continue;
      }
      const auto& from = previous != nullptr ? *previous : point;
      canvas.Line(x_of(from.first), y_of(from.second), x_of(point.first), y_of(point.second),
                  static_cast<int>(s), dots);
      previous = &point;
    }
    if (previous == nullptr) continue;
    // Puts the name into the free row nearest to the curve's end.
    const int wanted = y_of(previous->second) / 4;
    for (int distance = 0; distance < rows; ++distance) {
      const int below = wanted + distance;
      const int above = wanted - distance;
      const int row = below < rows && name_of_row[below] < 0 ? below
                      : above >= 0 && name_of_row[above] < 0 ? above
                                                             : -1;
      if (row < 0) continue;
      name_of_row[row] = static_cast<int>(s);
      break;
    }
  }

  const auto label_of = [&](double value) {
    return PadLeft(height_label ? height_label(value) : absl::StrFormat("%.0f %%", value * 100),
                   kAxis - 1);
  };
  const int split_column = split.has_value() ? x_of(*split) / 2 : -1;
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const double value = 1 - static_cast<double>(row) / (rows - 1);
    const bool labelled = row == 0 || row == rows - 1 || row == (rows - 1) / 2;
    std::string line = labelled ? label_of(value) + " ┤" : std::string(kAxis, ' ') + "│";
    for (int column = 0; column < columns; ++column) {
      line += canvas.Cell(column, row, column == split_column, palette);
    }
    if (const int s = name_of_row[row]; s >= 0) {
      absl::StrAppend(&line, " ", palette(SeriesPaint(s), names[s]));
    }
    AppendLine(text, line);
  }

  std::string axis = std::string(kAxis, ' ') + "└";
  for (int column = 0; column < columns; ++column) axis += column == split_column ? "┴" : "─";
  AppendLine(text, axis);

  std::string ticks(columns, ' ');
  if (split.has_value()) Place(ticks, absl::StrCat(*split), split_column);
  Place(ticks, absl::StrCat(lowest), 0);
  Place(ticks, absl::StrCat(highest), columns);
  for (int quarter = 1; quarter < 4; ++quarter) {
    const double x = std::round(lowest + (highest - lowest) * quarter / 4);
    Place(ticks, absl::StrCat(x), x_of(x) / 2);
  }
  AppendLine(text, std::string(kAxis + 1, ' ') + ticks + " " + x_label);

  if (split.has_value()) {
    std::string labels(columns, ' ');
    Place(labels, split_labels.second, split_column + 2);
    Place(labels, split_labels.first,
          split_column - static_cast<int>(split_labels.first.size()) - 1);
    AppendLine(text, palette(Paint::kDim, std::string(kAxis + 1, ' ') + labels));
  }
  return text;
}

namespace {

using nlohmann::json;

constexpr int kRows = 12;
constexpr int kMostWidth = 120;

using Range = std::pair<double, double>;

std::optional<Range> RangeOf(const json& value) {
  if (value.is_null()) return std::nullopt;
  return Range(value.at(0).get<double>(), value.at(1).get<double>());
}

// Converts between values and a chart's heights, 0 to 1.
struct Heights {
  double low;
  double high;
  bool logarithmic;

  double Of(double y) const {
    if (logarithmic) return std::log(y / low) / std::log(high / low);
    return (y - low) / (high - low);
  }
  double Value(double height) const {
    return logarithmic ? low * std::pow(high / low, height) : low + height * (high - low);
  }
};

Chart MakeChart(const json& figure, const json& panel) {
  const json& x = figure.at("x");
  const json& y = figure.at("y");
  const auto [low, high] = RangeOf(y.at("range")).value_or(Range(0, 1));
  const Heights heights{low, high, y.at("scale") == "log10"};
  Chart chart;
  chart.x_label = x.at("label").get<std::string>();
  for (const json& series : panel.at("series")) {
    const auto name = series.at("name").get<std::string>();
    // Faint background lines are omitted: a terminal has no room for them.
    if (series.at("faint").get<bool>() && name.empty()) continue;
    ChartSeries& curve = chart.series.emplace_back();
    curve.name = name;
    const json& xs = series.at("x");
    const json& ys = series.at("y");
    for (size_t i = 0; i < xs.size(); ++i) {
      // null: not a number.
      if (!ys.at(i).is_number()) continue;
      curve.points.emplace_back(xs.at(i).get<double>(), heights.Of(ys.at(i).get<double>()));
    }
  }
  const std::optional<Range> shaded = RangeOf(panel.at("shaded"));
  const std::optional<Range> shown = RangeOf(x.at("range"));
  if (shaded.has_value() && shown.has_value() && shaded->second < shown->second) {
    chart.split = shaded->second;
    if (absl::StrContains(figure.at("shaded_label").get<std::string>(), "seen in training")) {
      chart.split_labels = {"seen in training", "not seen"};
    } else {  // training showed other lengths than those that count as seen
      chart.split_labels = {absl::StrCat("up to ", shaded->second),
                            absl::StrCat("above ", shaded->second)};
    }
  }
  chart.height_label = [heights, percent = y.at("ticks") == "percent"](double height) {
    const double value = heights.Value(height);
    if (!percent) return absl::StrFormat("%.2g", value);
    // Five characters: "100 %", "0.12%".
    return value < 0.0995 && value != 0 ? absl::StrFormat("%.2g%%", 100 * value)
                                        : absl::StrFormat("%.0f %%", 100 * value);
  };
  return chart;
}

absl::StatusOr<std::string> Render(const json& figure, int width, const Palette& palette) {
  const json& x = figure.at("x");
  bool has_lines = x.at("scale") == "linear" && x.at("ticks") != "none";
  for (const json& panel : figure.at("panels")) {
    has_lines &= !panel.at("series").empty();
    for (const json& series : panel.at("series")) has_lines &= series.at("kind") == "line";
  }
  if (!has_lines) {
    return absl::InvalidArgumentError(
        absl::StrCat("a terminal cannot show the figure ", figure.at("kind").get<std::string>(),
                     "; it can show those of accuracies, errors and loss"));
  }
  std::string text =
      absl::StrCat(palette(Paint::kBold, figure.at("title").get<std::string>()), "\n");
  for (const json& panel : figure.at("panels")) {
    absl::StrAppend(&text, "\n", panel.at("title").get<std::string>(), " · ",
                    figure.at("y").at("label").get<std::string>(), "\n",
                    MakeChart(figure, panel).Render(std::min(width, kMostWidth), kRows, palette));
    for (const json& reference : panel.at("references")) {
      absl::StrAppend(&text, palette(Paint::kDim, reference.at("label").get<std::string>()), "\n");
    }
  }
  if (const auto caption = figure.at("caption").get<std::string>(); !caption.empty()) {
    absl::StrAppend(&text, "\n", Wrap(caption, std::min(width, kMostWidth), 0), "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> RenderFigure(const std::string& figure, int width,
                                         const Palette& palette) {
  try {
    return Render(json::parse(figure), width, palette);
  } catch (const json::exception& error) {
    return absl::InternalError(absl::StrCat("the figure cannot be read: ", error.what()));
  }
}

}  // namespace lengthwise::client
