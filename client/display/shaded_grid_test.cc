#include "client/display/shaded_grid.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One layer of two heads over `tokens` tokens, all but the last of input: head 1 attends to the
// token itself, head 2 to the mirrored one.
v1::AttentionMap Map(int tokens) {
  v1::AttentionMap map;
  map.set_length(tokens - 1);
  map.set_layers(1);
  map.set_heads(2);
  // The last token is an output.
  for (int i = 0; i < tokens; ++i) map.add_tokens(i + 1 < tokens ? 0 : 1);
  std::vector<float> values(2 * tokens * tokens, 0);
  for (int i = 0; i < tokens; ++i) {
    values[i * tokens + i] = 1;
    values[tokens * tokens + i * tokens + tokens - 1 - i] = 0.5;
  }
  map.set_probabilities(values.data(), values.size() * sizeof(float));
  return map;
}

TEST(AttentionGridTest, ShowsTheMaximumOverHeads) {
  EXPECT_THAT(RenderAttention(Map(3), {}, 80, Palette(false)),
              HasSubstr("layer 1 of 1, maximum over 2 heads, 0  ░▒▓█ 1.00\n"
                        "┌────┬─┐\n"
                        "│██  ▒▒│\n"
                        "│  ██  │\n"
                        "├▒▒  ██┤\n"
                        "└────┴─┘\n"));
}

TEST(AttentionGridTest, InputsEndWhereTheOutputTokensBegin) {
  v1::AttentionMap map = Map(8);
  map.set_length(3);  // as a file states it
  for (int i = 5; i < 8; ++i) map.set_tokens(i, 1);
  const std::string text = RenderAttention(map, {}, 80, Palette(false));
  EXPECT_THAT(text, HasSubstr("length 3: 5 input and 3 output tokens"));
  EXPECT_THAT(text, HasSubstr("┌──────────┬─────┐\n"));
  const std::string numbers = RenderAttention(map, {.has_outputs = false}, 80, Palette(false));
  EXPECT_THAT(numbers, HasSubstr("length 3: 8 tokens; rows are queries"));
}

TEST(AttentionGridTest, ShowsOneHeadByItsOwnScale) {
  EXPECT_THAT(RenderAttention(Map(3), {.head = 2}, 80, Palette(false)),
              HasSubstr("head 2 of 2, 0  ░▒▓█ 0.50\n"
                        "┌────┬─┐\n"
                        "│    ██│\n"
                        "│  ██  │\n"
                        "├██    ┤\n"
                        "└────┴─┘\n"));
}

TEST(AttentionGridTest, LargeGridShowsMaximumOfEachPlace) {
  const std::string text = RenderAttention(Map(100), {.head = 1}, 52, Palette(false));
  // 50 columns of two keys, 25 rows of four queries: on the diagonal two columns a row.
  EXPECT_THAT(text, HasSubstr("│██" + std::string(48, ' ') + "│\n│  ██" + std::string(46, ' ')));
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    if (text.compare(start, 3, "│") == 0) {
      EXPECT_LE(DisplayWidth(text.substr(start, end - start)), 52);
    }
    start = end + 1;
  }
}

TEST(AttentionGridTest, ColoursGiveMoreShadesThanBlocks) {
  v1::AttentionMap map = Map(3);
  std::vector<float> values(18, 0.5f);
  values[0] = 1;
  values[1] = 0.55f;  // between two blocks
  map.set_probabilities(values.data(), values.size() * sizeof(float));
  const std::string text = RenderAttention(map, {.head = 1}, 80, Palette(true));
  EXPECT_THAT(text, HasSubstr("│\x1b[48;5;255m  \x1b[48;5;245m  \x1b[48;5;244m  \x1b[0m│\n"));
  // As wide as without.
  EXPECT_THAT(text, HasSubstr("┌────┬─┐\n"));
}

TEST(AttentionGridTest, ShowsTheRequestedLayer) {
  v1::AttentionMap map = Map(3);
  map.set_layers(2);
  map.set_probabilities(map.probabilities() + map.probabilities());
  const std::string text = RenderAttention(map, {.layer = 2}, 80, Palette(false));
  EXPECT_THAT(text, HasSubstr("layer 2 of 2"));
  EXPECT_THAT(text, Not(HasSubstr("layer 1 of 2")));
}

TEST(AttentionGridTest, NoticesAMapOfTheWrongSize) {
  v1::AttentionMap map = Map(3);
  EXPECT_TRUE(CheckProbabilities(map).ok());
  map.add_tokens(0);
  EXPECT_TRUE(absl::IsInternal(CheckProbabilities(map)));
}

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

}  // namespace

}  // namespace lengthwise::client
