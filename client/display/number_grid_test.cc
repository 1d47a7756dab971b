#include "client/display/number_grid.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

NumberGrid Grid(int64_t rows, int64_t columns) {
  NumberGrid grid = {
      .title = "t", .row_name = "q", .column_name = "k", .rows = rows, .columns = columns};
  for (int64_t i = 0; i < rows * columns; ++i) grid.values.push_back(static_cast<double>(i));
  return grid;
}

TEST(NumberGridTest, LargerNumbersAreDarker) {
  EXPECT_EQ(RenderGrid(Grid(2, 2), 80, Palette(false)),
            "t, 0  ░▒▓█ 3; rows q, columns k\n"
            "┌────┐\n"
            "│  ░░│\n"
            "│▓▓██│\n"
            "└────┘\n");
}

TEST(NumberGridTest, NegativeZeroIsShownAsZero) {
  NumberGrid grid = Grid(1, 2);
  grid.values = {-1, -0.0};
  EXPECT_THAT(RenderGrid(grid, 80, Palette(false)), HasSubstr("t, -1  ░▒▓█ 0; "));
}

TEST(NumberGridTest, ManyNumbersShareACharacter) {
  const std::string text = RenderGrid(Grid(300, 300), 62, Palette(false));
  // 300 columns in 60 characters, and 300 rows in 30 lines, a title and a frame.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 33);
}

TEST(NumberGridTest, SvgHasASquareForEachNumber) {
  const std::string svg = GridsAsSvg({Grid(2, 3)});
  size_t squares = 0;
  for (size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) {
    ++squares;
  }
  EXPECT_EQ(squares, 6U);
  EXPECT_THAT(svg, HasSubstr("#ff0000"));  // the largest
  EXPECT_THAT(svg, HasSubstr("#ffffff"));  // 0
}

TEST(NumberGridTest, SvgEscapesItsTitles) {
  NumberGrid grid = Grid(1, 1);
  grid.title = "a<b & c";
  EXPECT_THAT(GridsAsSvg({grid}), HasSubstr(">a&lt;b &amp; c</text>"));
}

}  // namespace
}  // namespace lengthwise::client
