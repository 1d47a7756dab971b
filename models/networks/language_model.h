// What continues text: a causal network that sees the examples of a step one by one, and that
// writes answers token by token.
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

// Examples of which each attends to itself alone, in groups of equal length, so that none is
// padded: what a layer does to single tokens it does to all of them at once, and attention takes
// one group after another.
struct ExampleGroups {
  struct Group {
    int64_t examples = 0;
    int64_t length = 0;  // tokens of each
    // Which of the positions that are given is that of their first tokens.
    int64_t first_position = 0;
    // Tokens of each example's prompt, for models whose prompts attend to themselves whole.
    int64_t prompt = 0;
  };
  // int64 [P, N]: the groups one behind the other, each [examples, length] row-major.
  at::Tensor tokens;
  std::vector<Group> groups;

  // As many positions as the groups need.
  int64_t Positions() const;
};

// Keys and values of the tokens that a model has seen of some sequences; made by StartDecoding.
class DecodingCache {
 public:
  virtual ~DecodingCache() = default;
};

// Immutable after construction; the parameters are in the arena. Methods may be called from any
// thread. P members, V tokens of the vocabulary.
//
// `positions`, int64 [P, S, T], S as for Network::Forward, has those of an example's tokens 0, 1, 2
// and so on from its group's first_position on; T is at least ExampleGroups::Positions().
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Logits of the token behind each token, [P, N, V]. `dropout` and `capture` as for
  // Network::Forward; a capture needs a single group.
  virtual at::Tensor Forward(const ParameterSet& parameters, const ExampleGroups& examples,
                             const at::Tensor& positions, const DropoutNumbers* dropout,
                             Capture* capture) const = 0;

  // For `sequences` sequences of at most T tokens, T the size of `positions`, none seen yet.
  virtual std::unique_ptr<DecodingCache> StartDecoding(const ParameterSet& parameters,
                                                       int64_t sequences,
                                                       const at::Tensor& positions) const = 0;

  // Shows `tokens`, int64 [P, B, k], the next k of each sequence, and returns the logits of the
  // token behind the last of them, [P, B, V]. Not differentiable. The first call shows the prompts
  // whole where the model attends to them so. Otherwise what a sequence is told does not depend on
  // the others or on k, but for the rounding of kernels that depends on a batch's size.
  virtual at::Tensor Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                            DecodingCache& cache) const = 0;
};

struct LanguageModelShape {
  // V.
  int64_t vocabulary = 0;
  // Most tokens of any example in training or evaluation.
  int64_t longest_sequence = 0;
};

// As CreateNetwork, for networks that learn tasks::TaskKind::kText.
absl::StatusOr<std::unique_ptr<LanguageModel>> CreateLanguageModel(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const LanguageModelShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_LANGUAGE_MODEL_H_
