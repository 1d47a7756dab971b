// All positional encodings by name, without LibTorch. A new encoding is a section of catalogue.cc,
// a file with its implementation and a line in all_encodings.h (CONTRIBUTING.md has the recipe).
#ifndef LENGTHWISE_MODELS_ENCODINGS_CATALOGUE_H_
#define LENGTHWISE_MODELS_ENCODINGS_CATALOGUE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::models {

// What an encoding must fit.
struct EncodingContext {
  int64_t d_model = 0;
  int64_t heads = 0;
  int64_t blocks = 0;
  // Most tokens (input and output) of any sequence in training or evaluation.
  int64_t longest_sequence = 0;
  // Fewest tokens of any sequence; 0 where that is not known.
  int64_t shortest_sequence = 0;
  // Operations that a check may spend on evaluating an encoding at sample positions, so that a
  // grid of many encodings is checked in bounded time.
  int64_t operations = int64_t{1} << 24;
  // Whether sequences are continued token by token, so that nobody knows their length beforehand.
  bool open_ended = false;
  // Whether the network takes the positions as vectors, and not as additions to embeddings,
  // queries, keys or logits.
  bool as_vectors = false;
};

struct EncodingEntry : catalogue::Entry {
  // Whether it consumes positions; then it has the parameters of positions.h ("randomized",
  // "max_position", "sorted").
  bool uses_positions = false;
  // Appends what is wrong with the combination, fields under `path`; may be null.
  void (*check)(const catalogue::Parameters& parameters, const EncodingContext& context,
                absl::string_view path, std::vector<catalogue::Problem>& problems) = nullptr;
  // Which of the two it is: an addition to embeddings, queries, keys or logits; vectors. "none" is
  // the addition of nothing.
  bool is_added = true;
  bool gives_vectors = false;
};

// Appends what is wrong with an encoding in its context, fields under `path`: everything that the
// entry's own check finds, and that it gives what the network takes.
void CheckEncoding(const EncodingEntry& entry, const catalogue::Parameters& parameters,
                   const EncodingContext& context, absl::string_view path,
                   std::vector<catalogue::Problem>& problems);

// Lives forever.
absl::Span<const EncodingEntry* const> EncodingEntries();

// The entry of "formula", the encoding that a specification writes itself (formula_definition.h).
const EncodingEntry& FormulaEntry();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CATALOGUE_H_
