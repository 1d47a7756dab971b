// How the positions of a sequence's tokens are chosen: counted 0, 1, 2, ..., or drawn by the rule
// of a paper. Positions are real numbers, exact for integers. No LibTorch.
#ifndef LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_
#define LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "random/stream.h"

namespace lengthwise::models {

// Parameters of every encoding that consumes positions: "positions", which chooses how they are
// made, and the options of single choices.
std::vector<catalogue::ParameterEntry> PositionParameters();

// Parameter "distances" of encodings that use distances between positions: "positions" or
// "offsets", see PositionPolicy::Draw.
catalogue::ParameterEntry DistancesParameter();

// Parameter "draws": "shared", "per_sequence" or, for encodings that use positions in every block,
// "per_block".
catalogue::ParameterEntry DrawsParameter(bool in_every_block = true);

// Appends a problem with field "<path>.<option>" for each option that the choice of positions does
// not use, and one with field "<path>.max_position" if sequences of `longest_sequence` tokens do
// not fit into it.
void CheckPositions(const catalogue::Parameters& parameters, int64_t longest_sequence,
                    absl::string_view path, std::vector<catalogue::Problem>& problems);

// For encodings of integers: appends a problem if the choice makes real numbers. `what` has one
// place for each integer: "a table", "a one-hot vector".
void CheckIntegerPositions(const catalogue::Parameters& parameters, absl::string_view what,
                           absl::string_view path, std::vector<catalogue::Problem>& problems);

// Appends a problem if `d_model` is odd: sinusoids come in pairs.
void CheckEvenWidth(int64_t d_model, absl::string_view path,
                    std::vector<catalogue::Problem>& problems);

// How an encoding's positions are chosen; "counted" if it has no such parameters.
class PositionPolicy {
 public:
  // `blocks` is the number of draws if each block takes its own (parameter "draws").
  explicit PositionPolicy(const catalogue::Parameters& encoding_parameters, int64_t blocks = 1);

  // True if training does not count tokens from 0.
  bool drawn() const { return choice_ != Choice::kCounted; }
  // True if positions may be other numbers than integers from 0.
  bool real() const { return choice_ == Choice::kUniformReals || choice_ == Choice::kAugmented; }
  // True if the next token's position is always one more.
  bool consecutive() const { return choice_ == Choice::kCounted || choice_ == Choice::kShift; }
  // The choice as specifications write it. "subset" for `randomized: true`.
  absl::string_view name() const;

  // Bounds of the positions of at most `tokens` tokens, both included.
  struct Bounds {
    double lowest = 0;
    double highest = 0;
  };
  Bounds BoundsOf(int64_t tokens) const;
  // Number of integers 0, 1, ... that include the positions of at most `tokens` tokens. Not for
  // choices that are real().
  int64_t Integers(int64_t tokens) const {
    return static_cast<int64_t>(BoundsOf(tokens).highest) + 1;
  }

  // True if positions are the ids of the examples (tasks::TextTask::Ids).
  bool from_data() const { return choice_ == Choice::kData; }
  // True if each sequence of a batch has its own positions: its ids, or a draw.
  bool each() const { return from_data() || (drawn() && each_); }

  // S, draws per batch: one for all blocks, or one for each.
  int64_t draws() const { return draws_; }

  // Draws positions for `tokens` tokens in training, by the choice's rule (positions.cc). If
  // "distances" is "offsets", returns 0 and a random subset of {1, ..., L - 1}: the distances
  // between tokens 0, 1, 2, ... places apart (relative.cc). CheckPositions ensures that
  // max_position is large enough.
  std::vector<double> Draw(random::Stream stream, int64_t tokens) const;

  // Draws of rows `first` .. first + rows - 1, [rows, tokens] row-major. Each uses the stream
  // (seed, purpose, step, row). kTrainingPositions is training, all other purposes are evaluations,
  // which draw only for `subset` and `uniform_reals`.
  std::vector<double> DrawRows(uint64_t seed, random::Purpose purpose, uint64_t step, int64_t first,
                               int64_t rows, int64_t tokens) const;

  // Draws of a batch whose sequences share them, [S, tokens]: rows 0 .. S - 1.
  std::vector<double> DrawBatch(uint64_t seed, random::Purpose purpose, uint64_t step,
                                int64_t tokens) const {
    return DrawRows(seed, purpose, step, 0, draws_, tokens);
  }

  // The examples' ids as positions, at most L - 1, which only inputs from users exceed. In training
  // one offset of 0 to K for the whole batch is added to those above 0.
  std::vector<double> WithOffset(absl::Span<const int32_t> ids, uint64_t seed,
                                 random::Purpose purpose, uint64_t step) const;

 private:
  // In the order of the parameter's values.
  enum class Choice { kCounted, kSubset, kUniformReals, kShift, kAugmented, kSkips, kData };

  // Positions without random numbers.
  std::vector<double> Plain(int64_t tokens) const;

  Choice choice_;
  int64_t max_position_;
  bool sorted_;
  bool at_evaluation_;
  bool offsets_;
  int64_t random_offset_;
  double global_shift_, local_shift_, scaling_;
  bool centered_;
  bool each_;
  int64_t draws_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_POSITIONS_H_
