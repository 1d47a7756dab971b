// Positional attention and the standard attention that it is compared with ("Positional Attention:
// Out-of-Distribution Generalization and Expressivity for Neural Algorithmic Reasoning", section 4,
// equations (1) to (3), and its released code), with the architectures between the two of appendix
// G.
//
//   h = x W_e + b_e                   x: a token's number, its vocabulary's row, its position
//   per block, with H heads:
//     A_h = softmax(q_h k_h^T / sqrt(d_k))    q, k: linear in the positions' vectors, in h or both
//     o = concat_h(A_h v_h) W_o + b_o         v: linear in h
//     h = W_2 relu(W_1 [h, o] + b_1) + b_2
//   outputs = h W + b
//
// There is no residual addition, no layer norm and no mask. Queries and keys of a head are as wide
// as what they are made of, and may be turned by RoPE (appendix C.3); values are d_model / H wide.
//
// Weights start as PyTorch's modules do, but queries and keys of all heads by Xavier as one matrix,
// values and attention's output by Xavier, their biases zero.
#ifndef LENGTHWISE_MODELS_NETWORKS_POSITIONAL_ATTENTION_H_
#define LENGTHWISE_MODELS_NETWORKS_POSITIONAL_ATTENTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/networks/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Network;
struct NetworkShape;

const NetworkEntry& PositionalAttentionEntry();

// As CreateNetwork.
absl::StatusOr<std::unique_ptr<Network>> CreatePositionalAttention(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
    ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_POSITIONAL_ATTENTION_H_
