// A grid of numbers as shades: in the terminal, and as an SVG file.
#ifndef LENGTHWISE_CLIENT_DISPLAY_NUMBER_GRID_H_
#define LENGTHWISE_CLIENT_DISPLAY_NUMBER_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/display/terminal_text.h"

namespace lengthwise::client {

struct NumberGrid {
  std::string title;
  // What rows and columns are: "q", "k".
  std::string row_name, column_name;
  int64_t rows = 0, columns = 0;
  // rows x columns finite numbers, row by row.
  std::vector<double> values;
};

// One character or two for each number, darker for larger ones, in `width` columns; a character
// stands for the largest of several numbers where they are more. The title says what the lightest
// and the darkest shade are.
std::string RenderGrid(const NumberGrid& grid, int width, const Palette& palette);

// The grids side by side, four in a row: a square for each number, blue below 0 and red above it,
// in the same scale for all.
std::string GridsAsSvg(const std::vector<NumberGrid>& grids);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_NUMBER_GRID_H_
