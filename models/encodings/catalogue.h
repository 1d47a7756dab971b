// Catalogue of all positional encodings by name, without LibTorch. A new encoding needs a section
// of catalogue.cc, a file with its implementation and a line in the list below (recipe in
// CONTRIBUTING.md).
#ifndef LENGTHWISE_MODELS_ENCODINGS_CATALOGUE_H_
#define LENGTHWISE_MODELS_ENCODINGS_CATALOGUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"

// All positional encodings, in display order. Each line joins a section of catalogue.cc, the
// function NAME(), to an implementation, CreateNAME() of encoding.h. A line without either does not
// build.
// clang-format off
#define LENGTHWISE_ENCODINGS(ENCODING) \
  ENCODING(None) \
  ENCODING(SinCos) \
  ENCODING(Learned) \
  ENCODING(Relative) \
  ENCODING(Alibi) \
  ENCODING(Rope) \
  ENCODING(Shaw) \
  ENCODING(SinCos2d) \
  ENCODING(Fire) \
  ENCODING(KerpleLog) \
  ENCODING(T5) \
  ENCODING(OneHot) \
  ENCODING(Binary) \
  ENCODING(Formula)
// clang-format on

namespace lengthwise::models {

// Network and data that an encoding is checked against.
struct EncodingContext {
  int64_t d_model = 0;
  int64_t heads = 0;
  int64_t blocks = 0;
  // Most tokens (input and output) of any sequence in training or evaluation.
  int64_t longest_sequence = 0;
  // Fewest tokens of any sequence; 0 if unknown.
  int64_t shortest_sequence = 0;
  // Budget of a check that evaluates an encoding at sample positions, in operations. It bounds the
  // time to check a grid of many encodings.
  int64_t operations = int64_t{1} << 24;
  // True if sequences are continued token by token, so that their length is not known in advance.
  bool open_ended = false;
  // True if the network takes positions as vectors, not as additions to embeddings, queries, keys
  // or logits.
  bool as_vectors = false;
  // True if the network takes `own` and, if it also takes a bias of its attention, encodings that
  // are one (IsBias).
  bool alone = false;
  bool takes_bias = false;
  // True if the network reads tokens in their order and takes only `none`.
  bool reads_in_order = false;
  // True if the sequences of a batch may have positions of their own (PositionPolicy::each).
  bool own_positions = false;
  // Largest id of the tasks' examples; -1 if a task has none. And its line, if a file has it.
  int64_t largest_id = -1;
  std::string largest_id_line = {};
};

struct EncodingEntry : catalogue::Entry {
  // Appends problems of the combination, with fields under `path`, other than those that positions
  // have in every encoding (CheckPositions). May be null.
  void (*check)(const catalogue::Parameters& parameters, const EncodingContext& context,
                absl::string_view path, std::vector<catalogue::Problem>& problems) = nullptr;
  // Forms that the encoding supports: additions to embeddings, queries, keys or logits; vectors.
  // "none" adds nothing.
  bool is_added = true;
  bool gives_vectors = false;
  // True for `own`, whose positions a user's module gets as they are.
  bool is_own = false;

  // True if the encoding consumes positions: it has the parameters of positions.h.
  bool uses_positions() const;
};

// Appends problems of an encoding in its context, with fields under `path`: those of the entry's
// own check, and a form that the network does not take.
void CheckEncoding(const EncodingEntry& entry, const catalogue::Parameters& parameters,
                   const EncodingContext& context, absl::string_view path,
                   std::vector<catalogue::Problem>& problems);

// The encodings that this program has, and these with `own`. They live forever.
absl::Span<const EncodingEntry* const> EncodingEntries();
absl::Span<const EncodingEntry* const> EveryEncodingEntry();

// Returns true if all that an encoding does is to add a number to the logits for each head and pair
// of tokens, the same in every block.
bool IsBias(absl::string_view name, const catalogue::Parameters& parameters);

// The encoding that the parameter "beside" names: it adds to the logits or rotates, with counted
// positions, while the one with the parameter adds to the embeddings (Abacus with FIRE, McLeish et
// al. 2024). Nullopt if there is none, and for mistakes, which are appended to `problems`.
struct Beside {
  const EncodingEntry* entry = nullptr;
  catalogue::Parameters parameters;
};
std::optional<Beside> BesideOf(const catalogue::Parameters& parameters, absl::string_view path,
                               std::vector<catalogue::Problem>& problems);

// Entry of "formula", the encoding that a specification writes itself (formula_definition.h).
const EncodingEntry& FormulaEntry();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CATALOGUE_H_
