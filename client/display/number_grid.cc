#include "client/display/number_grid.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace lengthwise::client {
namespace {

constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
constexpr int kShadeCount = 5;

const char* Shade(double value, double smallest, double largest) {
  if (!(largest > smallest)) return kShades[0];
  const double share = (value - smallest) / (largest - smallest);
  return kShades[std::clamp(static_cast<int>(share * (kShadeCount - 1) + 0.5), 0, kShadeCount - 1)];
}

// Maps -1 .. 1 to blue, white, red.
std::string Color(double share) {
  const int pale = static_cast<int>(255 * (1 - std::min(1.0, std::abs(share))));
  return share < 0 ? absl::StrFormat("#%02x%02xff", pale, pale)
                   : absl::StrFormat("#ff%02x%02x", pale, pale);
}

}  // namespace

std::string RenderGrid(const NumberGrid& grid, int width, const Palette& palette) {
  const auto [smallest, largest] = std::minmax_element(grid.values.begin(), grid.values.end());
  // Characters are twice as high as wide.
  const int64_t room = std::max(10, width - 2);
  const int64_t across = (grid.columns + room - 1) / room;
  const bool is_square = 2 * grid.columns <= room;
  const int64_t down = is_square ? 1 : 2 * across;
  const int characters = is_square ? 2 : 1;
  std::string legend;  // its numbers are 0 instead of -0
  for (const char* shade : kShades) legend += shade;
  std::string text = absl::StrCat(palette(Paint::kBold, grid.title), ", ",
                                  absl::StrFormat("%.4g ", *smallest + 0.0), legend,
                                  absl::StrFormat(" %.4g", *largest + 0.0), "; rows ",
                                  grid.row_name, ", columns ", grid.column_name, "\n");
  const auto frame = [&](const char* left, const char* right) {
    text += left;
    for (int64_t c = 0; c < (grid.columns + across - 1) / across * characters; ++c) text += "─";
    absl::StrAppend(&text, right, "\n");
  };
  frame("┌", "┐");
  for (int64_t row = 0; row < grid.rows; row += down) {
    text += "│";
    for (int64_t column = 0; column < grid.columns; column += across) {
      double shown = *smallest;
      for (int64_t r = row; r < std::min(row + down, grid.rows); ++r) {
        for (int64_t c = column; c < std::min(column + across, grid.columns); ++c) {
          shown = std::max(shown, grid.values[static_cast<size_t>(r * grid.columns + c)]);
        }
      }
      for (int i = 0; i < characters; ++i) text += Shade(shown, *smallest, *largest);
    }
    text += "│\n";
  }
  frame("└", "┘");
  return text;
}

std::string GridsAsSvg(const std::vector<NumberGrid>& grids) {
  constexpr int64_t kSide = 240, kGap = 24, kPerRow = 4;
  double largest = 0;
  for (const NumberGrid& grid : grids) {
    for (const double value : grid.values) largest = std::max(largest, std::abs(value));
  }
  const auto count = static_cast<int64_t>(grids.size());
  const int64_t lines = (count + kPerRow - 1) / kPerRow;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\" shape-rendering=\"crispEdges\">\n",
      std::min(count, kPerRow) * (kSide + kGap) + kGap, lines * (kSide + 2 * kGap) + 2 * kGap);
  for (int64_t i = 0; i < count; ++i) {
    const NumberGrid& grid = grids[static_cast<size_t>(i)];
    const int64_t left = kGap + i % kPerRow * (kSide + kGap);
    const int64_t top = 2 * kGap + i / kPerRow * (kSide + 2 * kGap);
    // Escaped, because a title contains the user's label.
    absl::StrAppendFormat(&svg, "<text x=\"%d\" y=\"%d\">%s</text>\n", left, top - 6,
                          absl::StrReplaceAll(grid.title, {{"&", "&amp;"}, {"<", "&lt;"}}));
    const double width = static_cast<double>(kSide) / static_cast<double>(grid.columns);
    const double height = static_cast<double>(kSide) / static_cast<double>(grid.rows);
    for (int64_t row = 0; row < grid.rows; ++row) {
      for (int64_t column = 0; column < grid.columns; ++column) {
        const double value = grid.values[static_cast<size_t>(row * grid.columns + column)];
        absl::StrAppendFormat(&svg,
                              "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                              "fill=\"%s\"/>\n",
                              static_cast<double>(left) + static_cast<double>(column) * width,
                              static_cast<double>(top) + static_cast<double>(row) * height,
                              width + 0.3, height + 0.3, Color(largest > 0 ? value / largest : 0));
      }
    }
  }
  absl::StrAppendFormat(&svg,
                        "<text x=\"%d\" y=\"%d\">blue: -%.4g, white: 0, red: %.4g; rows %s, "
                        "columns %s</text>\n</svg>\n",
                        kGap, lines * (kSide + 2 * kGap) + kGap + 10, largest, largest,
                        grids.empty() ? "" : grids[0].row_name,
                        grids.empty() ? "" : grids[0].column_name);
  return svg;
}

}  // namespace lengthwise::client
