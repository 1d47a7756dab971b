// Block of the positional-attention network (positional_attention.cc): attention and feed-forward
// layers.
#ifndef LENGTHWISE_MODELS_NETWORKS_POSITIONAL_BLOCK_H_
#define LENGTHWISE_MODELS_NETWORKS_POSITIONAL_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "catalogue/entry.h"
#include "models/encodings/encoding.h"
#include "models/networks/network.h"
#include "models/networks/parameterized_layers.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Positions as an encoding gives them to a block. `vectors` [P, n, d_P] are undefined if the
// encoding adds to queries, keys and logits instead, which needs attention by input alone.
struct BlockPositions {
  const Encoding& encoding;
  int64_t block = 0;
  at::Tensor positions;  // double [P, n]
  at::Tensor vectors;
};

class PositionalBlock {
 public:
  // `parameters` are a network's, resolved. `vector_size` is d_P, 0 without vectors. Adds
  // parameters named "<prefix>...".
  PositionalBlock(const catalogue::Parameters& parameters, const std::string& prefix,
                  int64_t vector_size, ParameterLayout& layout);

  // Maps h [P, B, n, d] to the block's output of the same shape. `capture` may be null.
  at::Tensor operator()(const ParameterSet& parameters, const BlockPositions& positions,
                        const at::Tensor& h, Capture* capture) const;

 private:
  // softmax(q k^T / sqrt(d_k)), [P, B, H, n, n]. B is 1 if it depends only on positions.
  at::Tensor Probabilities(const ParameterSet& parameters, const BlockPositions& positions,
                           const at::Tensor& h, Capture* capture) const;

  // Applies RoPE to queries and keys [P, B, H, n, d_k].
  void Rotate(const ParameterSet& parameters, const at::Tensor& positions, at::Tensor& queries,
              at::Tensor& keys) const;

  // Sources of queries and keys: the positions' vectors, the input or both.
  bool by_positions_, by_input_;
  // The index by which RoPE rotates queries and keys, in addition to the vectors: the head's, which
  // rotates a head's queries and keys alike, or the token's position.
  bool turned_by_heads_;
  std::unique_ptr<Encoding> rope_;  // null without RoPE
  int64_t heads_;
  bool attention_first_;
  double scale_;
  LinearLayer query_, key_, value_, output_, up_, down_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_POSITIONAL_BLOCK_H_
