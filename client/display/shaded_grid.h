// Draws grids of numbers as shades in the terminal: attention probabilities, and other numbers.
#ifndef LENGTHWISE_CLIENT_DISPLAY_SHADED_GRID_H_
#define LENGTHWISE_CLIENT_DISPLAY_SHADED_GRID_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/display/terminal.h"
#include "proto/event.pb.h"

namespace lengthwise::client {

// INTERNAL if the number of bytes of a map's probabilities, [layers, heads, tokens, tokens], does
// not match its sizes.
absl::Status CheckProbabilities(const v1::AttentionMap& map);

// Indices from 0; a query attends to keys. The map must pass CheckProbabilities.
float ProbabilityAt(const v1::AttentionMap& map, int layer, int head, int query, int key);

struct AttentionView {
  int layer = 0;  // from 1; 0: all, one grid after another
  int head = 0;   // from 1; 0: the maximum over all heads
  // TaskEntry::axis of the trial's task.
  std::string axis = "length";
  // Output tokens, which are all the same, follow the input. Only transductions have them.
  bool has_outputs = true;
};

// Draws attention probabilities. Rows are queries, columns keys. Ticks on the frame mark the first
// output token. A grid has one place per token while it fits `width` columns; larger maps show in
// each place the maximum of its probabilities. The darkest shade is the grid's largest probability,
// which its title states.
std::string RenderAttention(const v1::AttentionMap& map, const AttentionView& view, int width,
                            const Palette& palette);

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

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_SHADED_GRID_H_
