// Which positions the tokens of a training step of text have. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_TEXT_POSITIONS_H_
#define LENGTHWISE_WORKER_DATA_TEXT_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "models/encodings/positions.h"
#include "worker/data/text_examples.h"

namespace lengthwise::worker::data {

// The draws of a training step for its sequences of `tokens` tokens, [S, tokens] row-major, S as
// PositionPolicy::draws. Each length has draws of its own, as in evaluations: the beginning of a
// longer one's would be its smallest positions alone.
std::vector<int64_t> DrawForLength(const models::PositionPolicy& policy, uint64_t data_seed,
                                   int64_t step, int64_t tokens);

struct TextPositions {
  std::vector<int64_t> positions;  // [S, T] row-major
  int64_t count = 0;               // T
  std::vector<int64_t> first;      // of each of the pass's groups, where in T its own begin
};

// Of one pass of `step`. Randomized, a draw serves the sequences of one length, in all passes of
// the step: they have the positions that sequences of this length have in evaluations, whatever
// else is in the step (Ruoss et al. 2023, section 3, whose batches have one length).
TextPositions PositionsOfPass(const models::PositionPolicy& policy, uint64_t data_seed,
                              int64_t step, const TextPass& pass);

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_TEXT_POSITIONS_H_
