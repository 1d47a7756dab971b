// Draws a grid of numbers as shades, in the terminal or as an SVG file.
#ifndef LENGTHWISE_CLIENT_DISPLAY_NUMBER_GRID_H_
#define LENGTHWISE_CLIENT_DISPLAY_NUMBER_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/display/terminal_text.h"

namespace lengthwise::client {

struct NumberGrid {
  std::string title;
  // Names of the axes: "q", "k".
  std::string row_name, column_name;
  int64_t rows = 0, columns = 0;
  // rows x columns finite numbers, row by row.
  std::vector<double> values;
};

// Draws each number with one or two characters, darker for larger numbers, in at most `width`
// columns. In a larger grid a character shows the maximum of several numbers. The title states the
// values of the lightest and the darkest shade.
std::string RenderGrid(const NumberGrid& grid, int width, const Palette& palette);

// Draws the grids side by side, four in a row. Each number is a square, blue below 0 and red above
// it, with one scale for all grids.
std::string GridsAsSvg(const std::vector<NumberGrid>& grids);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_NUMBER_GRID_H_
