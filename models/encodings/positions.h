// Which positions the tokens of a sequence get: 0, 1, 2, ... or, randomized, a sorted random subset
// of {0, ..., L - 1} (randomized positional encodings, section 3; unsorted in its Table 3). No
// LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_
#define LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "random/stream.h"

namespace lengthwise::models {

// The parameters "randomized", "max_position", "sorted" and "randomized_at_evaluation" that every
// position-consuming encoding has.
std::vector<catalogue::ParameterEntry> PositionParameters();

// The parameter "distances" of encodings that use distances between positions: "positions" or
// "offsets", see PositionPolicy::Draw.
catalogue::ParameterEntry DistancesParameter();

// The parameter "draws" of encodings that use positions in every block: "shared" or "per_block".
catalogue::ParameterEntry DrawsParameter();

// Appends a problem for each option of randomized positions that is set where they are not
// randomized, field "<path>.<option>".
void CheckRandomizedOptions(const catalogue::Parameters& parameters, absl::string_view path,
                            std::vector<catalogue::Problem>& problems);

// As CheckRandomizedOptions, and appends a problem of field "<path>.max_position" if randomized
// positions do not reach for `longest_sequence` tokens.
void CheckPositions(const catalogue::Parameters& parameters, int64_t longest_sequence,
                    absl::string_view path, std::vector<catalogue::Problem>& problems);

// Appends a problem if sinusoids, which come in pairs, do not fill `d_model` features.
void CheckEvenWidth(int64_t d_model, absl::string_view path,
                    std::vector<catalogue::Problem>& problems);

// What the parameters say; for an encoding without them, plain positions.
class PositionPolicy {
 public:
  // `blocks` of the network count where each takes its own draw (the parameter "draws").
  explicit PositionPolicy(const catalogue::Parameters& encoding_parameters, int64_t blocks = 1);

  // In training; in evaluations, too, unless the parameter "randomized_at_evaluation" is false.
  bool randomized() const { return randomized_; }
  // L: the positions are below it.
  int64_t max_position() const { return max_position_; }

  // S, the draws that a batch takes: one for all blocks or one for each.
  int64_t draws() const { return draws_; }

  // One draw: positions of `tokens` tokens, ascending or, where the parameter "sorted" is false, in
  // random order. Where the parameter "distances" is "offsets" they are 0 and a random subset of
  // {1, ..., L - 1}: the distances between tokens 0, 1, 2, ... places apart (relative.h). Needs
  // tokens <= max_position() if randomized (validation sees to it).
  std::vector<int64_t> Draw(random::Stream stream, int64_t tokens) const;

  // The draws of a batch, [S, tokens] row-major; they serve all its sequences. Draw s is that of
  // the stream (seed, purpose, step, row s), or plain where positions are not randomized for this
  // purpose: kTrainingPositions is training, all others are evaluations.
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
