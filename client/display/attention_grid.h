// Attention probabilities as shaded grids in the terminal.
#ifndef LENGTHWISE_CLIENT_DISPLAY_ATTENTION_GRID_H_
#define LENGTHWISE_CLIENT_DISPLAY_ATTENTION_GRID_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/display/terminal_text.h"
#include "proto/event.pb.h"

namespace lengthwise::client {

// The numbers of a map, [layers, heads, tokens, tokens].
class AttentionProbabilities {
 public:
  // INTERNAL for a map whose bytes are not as many as its sizes say.
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
  // TaskEntry::axis of the trial's task: where it is no length, no tokens are there for the
  // outputs.
  std::string axis = "length";
};

// Rows are queries, columns keys; ticks on the frame stand where the output tokens begin. Grids are
// as large as the tokens are many while they fit into `width` columns; beyond that each place shows
// the largest of the probabilities that fall there. The darkest shade is the largest probability of
// a grid, which its title states.
std::string RenderAttention(const v1::AttentionMap& map, const AttentionView& view, int width,
                            const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_ATTENTION_GRID_H_
