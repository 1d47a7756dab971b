// Interface of the networks that trials train; each call serves a pack of models.
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

// Intermediate results to keep from a forward pass. Attention is [P, B, H, n, n], rows are queries.
// Layer outputs are those of each layer norm [P, B, n, d], in order of computation. Depths are the
// input of the first block and the output of each block, [P, B, n, d].
struct Capture {
  // False keeps no attention and allows the fast kernels of an ordinary forward pass. A network
  // without attention never keeps any.
  bool keep_attention = true;
  std::vector<at::Tensor> attention_logits;
  std::vector<at::Tensor> attention_probabilities;
  std::vector<at::Tensor> layer_outputs;
  std::vector<at::Tensor> depths;
};

// A batch of sequences. Each token is one of a vocabulary or, for networks that read numbers, a
// number.
struct NetworkInput {
  // int64 [P, B, n], below NetworkShape::input_columns; -1 for a number. Undefined if all tokens
  // are numbers.
  at::Tensor tokens;
  // [P, B, n] in the parameters' type, 0 for tokens that are not numbers. Undefined if no token is.
  at::Tensor numbers;
};

// Immutable after construction; the parameters are in the arena. Forward is thread-safe.
class Network {
 public:
  virtual ~Network() = default;

  // Outputs [P, B, m, O] of the last m = output_length tokens: logits of classes, or a regression's
  // numbers. `positions` is double [P, S, n]: S is 1, one draw for all blocks, or the number of
  // blocks, one draw for each (PositionPolicy::DrawBatch). `dropout` seeds dropout and the noise on
  // token embeddings (AddEmbeddingNoise); null disables both. `capture` may be null.
  virtual at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                             const at::Tensor& positions, int64_t output_length,
                             const DropoutNumbers* dropout, Capture* capture) const = 0;

  // True if a forward pass without gradients and without captured attention holds all logits [B, H,
  // n, n] in memory, for parameters with the device and type of `sample`. Callers use it to
  // estimate memory.
  virtual bool HoldsLogits(const at::Tensor& /*sample*/) const { return true; }

  // True if training draws random numbers on the host. A replayed CUDA graph would repeat them.
  virtual bool DrawsInTraining() const { return false; }
};

// Data that a network is built for.
struct NetworkShape {
  // Width of the one-hot input: the task's input tokens and the empty token. A network may add
  // columns.
  int64_t input_columns = 0;
  // Classes of the output; 1 for a regression.
  int64_t output_columns = 0;
  // True if token 0 is an empty cell, whose features are all zero.
  bool has_blank = false;
  // True if tokens may be numbers.
  bool has_numbers = false;
  // Most tokens of any sequence in training or evaluation.
  int64_t longest_sequence = 0;
};

// Creates a network with its encoding and adds their parameters to `layout`, which must outlive
// every arena made from it. Parameters come from catalogue::Resolve. Returns NOT_FOUND for an
// unknown name, and INVALID_ARGUMENT for parameters that do not fit together.
absl::StatusOr<std::unique_ptr<Network>> CreateNetwork(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout);

// Decorates a network for training.precision: bfloat16. It computes the network's products in
// bfloat16 (models/layers/layers.h), in training and evaluation. Parameters, their gradients and
// results stay float32.
std::unique_ptr<Network> WithBfloat16Products(std::unique_ptr<Network> inner);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_NETWORK_H_
