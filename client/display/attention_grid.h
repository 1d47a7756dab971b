// Draws attention probabilities as shaded grids in the terminal.
#ifndef LENGTHWISE_CLIENT_DISPLAY_ATTENTION_GRID_H_
#define LENGTHWISE_CLIENT_DISPLAY_ATTENTION_GRID_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/display/terminal_text.h"
#include "proto/event.pb.h"

namespace lengthwise::client {

// Access to the probabilities of a map, [layers, heads, tokens, tokens].
class AttentionProbabilities {
 public:
  // INTERNAL if the number of bytes does not match the map's sizes.
  static absl::Status Check(const v1::AttentionMap& map);

  // The map must pass Check and outlive this object.
  explicit AttentionProbabilities(const v1::AttentionMap& map) : map_(map) {}

  // Indices from 0; a query attends to keys.
  float At(int layer, int head, int query, int key) const;

 private:
  const v1::AttentionMap& map_;
};

struct AttentionView {
  int layer = 0;  // from 1; 0: all, one grid after another
  int head = 0;   // from 1; 0: the maximum over all heads
  // TaskEntry::axis of the trial's task. Maps have output tokens only if it is "length".
  std::string axis = "length";
};

// Rows are queries, columns keys. Ticks on the frame mark the first output token. A grid has one
// place per token while it fits `width` columns; larger maps show in each place the maximum of its
// probabilities. The darkest shade is the grid's largest probability, which its title states.
std::string RenderAttention(const v1::AttentionMap& map, const AttentionView& view, int width,
                            const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_ATTENTION_GRID_H_
