// Positions of a sequence's tokens: 0, 1, 2, ... or, randomized, a sorted random subset of {0, ...,
// L - 1} (randomized positional encodings, section 3; unsorted in Table 3). No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_
#define LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "random/stream.h"

namespace lengthwise::models {

// Parameters of every encoding that consumes positions: "randomized", "max_position", "sorted" and
// "randomized_at_evaluation".
std::vector<catalogue::ParameterEntry> PositionParameters();

// Parameter "distances" of encodings that use distances between positions: "positions" or
// "offsets", see PositionPolicy::Draw.
catalogue::ParameterEntry DistancesParameter();

// Parameter "draws" of encodings that use positions in every block: "shared" or "per_block".
catalogue::ParameterEntry DrawsParameter();

// Appends a problem for each option of randomized positions that is set without "randomized", with
// field "<path>.<option>".
void CheckRandomizedOptions(const catalogue::Parameters& parameters, absl::string_view path,
                            std::vector<catalogue::Problem>& problems);

// Calls CheckRandomizedOptions, and appends a problem with field "<path>.max_position" if
// randomized positions are too few for `longest_sequence` tokens.
void CheckPositions(const catalogue::Parameters& parameters, int64_t longest_sequence,
                    absl::string_view path, std::vector<catalogue::Problem>& problems);

// Appends a problem if `d_model` is odd: sinusoids come in pairs.
void CheckEvenWidth(int64_t d_model, absl::string_view path,
                    std::vector<catalogue::Problem>& problems);

// Position settings of an encoding; plain positions if it has no such parameters.
class PositionPolicy {
 public:
  // `blocks` is the number of draws if each block takes its own (parameter "draws").
  explicit PositionPolicy(const catalogue::Parameters& encoding_parameters, int64_t blocks = 1);

  // True if training randomizes positions. Evaluations do so too, unless "randomized_at_evaluation"
  // is false.
  bool randomized() const { return randomized_; }
  // L, the exclusive bound of positions.
  int64_t max_position() const { return max_position_; }

  // S, draws per batch: one for all blocks, or one for each.
  int64_t draws() const { return draws_; }

  // Draws positions for `tokens` tokens: ascending, or in random order if "sorted" is false. If
  // "distances" is "offsets", returns 0 and a random subset of {1, ..., L - 1}: the distances
  // between tokens 0, 1, 2, ... places apart (relative.cc). If randomized, needs tokens <=
  // max_position(), which CheckPositions ensures.
  std::vector<int64_t> Draw(random::Stream stream, int64_t tokens) const;

  // Draws of a batch, [S, tokens] row-major, shared by all its sequences. Draw s uses the stream
  // (seed, purpose, step, row s), or is plain if positions are not randomized for this purpose:
  // kTrainingPositions is training, all others are evaluations.
  std::vector<int64_t> DrawBatch(uint64_t seed, random::Purpose purpose, uint64_t step,
                                 int64_t tokens) const;

 private:
  static std::vector<int64_t> Plain(int64_t tokens);

  bool randomized_ = false;
  int64_t max_position_ = 0;
  bool sorted_ = true;
  bool at_evaluation_ = true;
  bool offsets_ = false;
  int64_t draws_ = 1;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_
