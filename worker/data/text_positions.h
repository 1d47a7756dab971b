// Determines the positions of tokens in a training step of a language model. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_TEXT_POSITIONS_H_
#define LENGTHWISE_WORKER_DATA_TEXT_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "models/encodings/positions.h"
#include "worker/data/text_examples.h"

namespace lengthwise::worker::data {

// Returns a training step's position draws for sequences of `tokens` tokens: [S, tokens] row-major,
// S = PositionPolicy::draws. Each length has its own draws, as in evaluations. A prefix of a longer
// sequence's draw would hold only its smallest positions.
std::vector<double> DrawForLength(const models::PositionPolicy& policy, uint64_t data_seed,
                                  int64_t step, int64_t tokens);

struct TextPositions {
  std::vector<double> positions;  // [S, T] row-major
  int64_t count = 0;              // T
  std::vector<int64_t> first;     // for each group of the pass, where its positions begin in T
  // True: T is all tokens of the pass, each with its own position (ExampleGroups::own_positions).
  bool own = false;
};

// Returns the positions of one pass of `step`. With drawn positions, all sequences of one
// length share a draw across the passes of the step. They get the positions that sequences of this
// length have in evaluations, whatever else the step contains (Ruoss et al. 2023, section 3, whose
// batches have one length). With own positions (PositionPolicy::each) every example has its ids or
// a draw.
TextPositions PositionsOfPass(const models::PositionPolicy& policy, uint64_t data_seed,
                              int64_t step, const TextPass& pass);

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_TEXT_POSITIONS_H_
