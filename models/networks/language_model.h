// Interface of networks that continue text: causal networks that train on separate examples, and
// write answers token by token.
#ifndef LENGTHWISE_MODELS_NETWORKS_LANGUAGE_MODEL_H_
#define LENGTHWISE_MODELS_NETWORKS_LANGUAGE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/layers/dropout.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// A step's examples, grouped by length so that none is padded. Examples attend only to themselves.
// Layers that work on single tokens process all groups at once; attention takes one group after
// another.
struct ExampleGroups {
  struct Group {
    int64_t examples = 0;
    int64_t length = 0;  // tokens per example
    // Index into the given positions of the examples' first token or, with own_positions, of the
    // first example's.
    int64_t first_position = 0;
    // Tokens of each example's prompt, for models whose prompts attend to themselves in both
    // directions or determine how often blocks are applied.
    int64_t prompt = 0;
  };
  // int64 [P, N]: the groups one after another, each [examples, length] row-major.
  at::Tensor tokens;
  std::vector<Group> groups;
  // True: every example has positions of its own, as many as tokens, one after another. False: the
  // examples of a group share theirs.
  bool own_positions = false;

  // Number of positions that the groups need.
  int64_t Positions() const;
};

// Keys and values of the tokens seen so far, for some sequences. Created by StartDecoding.
class DecodingCache {
 public:
  virtual ~DecodingCache() = default;
};

// Immutable after construction; the parameters are in the arena. All methods are thread-safe. P
// members, V tokens in the vocabulary.
//
// `positions` is double [P, S, T], with S as for Network::Forward. It holds the positions of an
// example's tokens 0, 1, 2, ... from its group's first_position on. T is at least
// ExampleGroups::Positions(). For decoding they may be [1, S, B, T], contiguous: each sequence's
// own, which may be written until its token is decoded.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Logits of the next token after each token, [P, N, V]. `dropout` and `capture` are as for
  // Network::Forward; a capture needs a single group.
  virtual at::Tensor Forward(const ParameterSet& parameters, const ExampleGroups& examples,
                             const at::Tensor& positions, const DropoutNumbers* dropout,
                             Capture* capture) const = 0;

  // Returns an empty cache for sequences of at most T tokens, T being the length of `positions`.
  virtual std::unique_ptr<DecodingCache> StartDecoding(const at::Tensor& positions) const = 0;

  // Appends `tokens`, int64 [P, B, k], to each sequence and returns the logits of the token after
  // the last one, [P, B, V]. Not differentiable. If prompts attend to themselves in both
  // directions or determine how often blocks are applied, the first call must pass whole prompts.
  // Otherwise results do not depend on k or on the other sequences, except for the rounding of
  // kernels, which may depend on the batch size.
  virtual at::Tensor Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                            DecodingCache& cache) const = 0;
};

// CreateNetwork for networks that learn tasks::TaskKind::kText. Both columns of `shape` are V.
absl::StatusOr<std::unique_ptr<LanguageModel>> CreateLanguageModel(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout);

// WithBfloat16Products for networks that continue text.
std::unique_ptr<LanguageModel> WithBfloat16Products(std::unique_ptr<LanguageModel> inner);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_LANGUAGE_MODEL_H_
