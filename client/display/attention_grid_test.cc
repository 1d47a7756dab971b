#include "client/display/attention_grid.h"

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
  for (int i = 0; i < tokens; ++i) map.add_tokens(0);
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
  EXPECT_TRUE(AttentionProbabilities::Check(map).ok());
  map.add_tokens(0);
  EXPECT_TRUE(absl::IsInternal(AttentionProbabilities::Check(map)));
}

}  // namespace
}  // namespace lengthwise::client
