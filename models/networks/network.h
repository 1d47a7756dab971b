// What learns: a network of a pack of models.
#ifndef LENGTHWISE_MODELS_NETWORKS_NETWORK_H_
#define LENGTHWISE_MODELS_NETWORKS_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/layers/dropout.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// What a forward pass should keep beside its result. Attention is [P, B, H, n, n], rows are
// queries; layer outputs are those of each layer norm [P, B, n, d], in the order of computation;
// depths are what enters the first block and then what each block gives, [P, B, n, d].
struct Capture {
  // Set to false to keep no attention, which then takes the fast way of an ordinary forward pass.
  bool keep_attention = true;
  std::vector<at::Tensor> attention_logits;
  std::vector<at::Tensor> attention_probabilities;
  std::vector<at::Tensor> layer_outputs;
  std::vector<at::Tensor> depths;
};

// A batch of sequences, each token of which is one of a vocabulary or, for networks that read
// numbers, a number.
struct NetworkInput {
  // int64 [P, B, n], below NetworkShape::input_columns; -1 for a number. Undefined where all are
  // numbers.
  at::Tensor tokens;
  // [P, B, n] in the parameters' type, 0 for a token that is no number. Undefined where none is.
  at::Tensor numbers;
};

// Immutable after construction; the parameters are in the arena. Forward may be called from any
// thread.
class Network {
 public:
  virtual ~Network() = default;

  // Outputs [P, B, m, O] of the last m = output_length tokens: logits of classes, or a regression's
  // numbers. `positions` is int64 [P, S, n]: S is 1, one draw for all blocks, or the number of
  // blocks, each its own (PositionPolicy::DrawBatch). `dropout` decides what is dropped where the
  // network has dropout, and what noise is added to the embeddings of tokens (AddEmbeddingNoise);
  // null stands for neither. `capture` may be null.
  virtual at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                             const at::Tensor& positions, int64_t output_length,
                             const DropoutNumbers* dropout, Capture* capture) const = 0;

  // Whether a forward pass without gradients and without a capture of attention, on parameters like
  // `sample` (their device and type), holds logits [B, H, n, n] at once: what memory it takes.
  virtual bool HoldsLogits(const at::Tensor& /*sample*/) const { return true; }

  // Whether a forward pass in training draws numbers on the host: a recorded one would repeat them.
  virtual bool DrawsInTraining() const { return false; }
};

// What a network is built for.
struct NetworkShape {
  // Width of the one-hot input: the task's input tokens and the empty token. A network may add
  // columns.
  int64_t input_columns = 0;
  // Classes of the output; 1 for a regression.
  int64_t output_columns = 0;
  // Whether token 0 is nothing: an empty cell, whose features are all zero.
  bool has_blank = false;
  // Whether tokens may be numbers.
  bool has_numbers = false;
  // Most tokens of any sequence in training or evaluation.
  int64_t longest_sequence = 0;
};

// Creates a network with its encoding and adds their parameters to the layout (which must outlive
// every arena made from it). NOT_FOUND for an unknown name; INVALID_ARGUMENT for parameters that do
// not fit together. Parameters come from catalogue::Resolve.
absl::StatusOr<std::unique_ptr<Network>> CreateNetwork(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_NETWORK_H_
