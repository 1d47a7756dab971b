// The Transformer encoder of relational reasoning on Latin squares (section 3.2 and its released
// code): the positional encoding is added again in every block, and each block has its own.
//
//   h = x W_e + b_e                                  (x one-hot; a blank cell is all zeros)
//   per block:  u = h + encoding;  a = LN(MHA(u) + u);  h = LN(gelu(W2 gelu(W1 a + b1) + b2) + a)
//   logits = h W + b  for the last m tokens
//
// What the code does beyond the paper are parameters: the outer gelu, attention without biases or
// without an output projection, a temperature.
//
// Weights start as PyTorch's modules do: linear layers uniform up to 1 / sqrt(fan_in), weights and
// biases alike; queries, keys and values by Xavier as one matrix, attention's biases zero. The
// encoding's parameters stand behind the network's own, so that models which differ in their
// encoding alone start from the same weights.
#ifndef LENGTHWISE_MODELS_NETWORKS_LAYERWISE_ENCODER_H_
#define LENGTHWISE_MODELS_NETWORKS_LAYERWISE_ENCODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/networks/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Network;
struct NetworkShape;

const NetworkEntry& LayerwiseEncoderEntry();

// As CreateNetwork.
absl::StatusOr<std::unique_ptr<Network>> CreateLayerwiseEncoder(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
    ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_LAYERWISE_ENCODER_H_
