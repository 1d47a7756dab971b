// The Transformer encoder of the length-generalization papers (Vaswani et al. 2017,
// post-layer-norm, bidirectional), as in randomized positional encodings, section 4 and its
// reference code:
//
//   h = E[token] sqrt(d) + encoding
//   per block:  u = LN(h + MHA(h));  h = LN(u + W2 relu(W1 u + b1) + b2)
//   logits = h W + b  for the last m tokens
//
// Dropout, none unless asked for, stands where the reference code has it: on what MHA and the
// feed-forward layers add, and on the embeddings where the encoding adds to them. Attention is a
// soft-max or geometric (models/attention/geometric.h).
//
// Attention's projections have no biases. Linear weights start as N(0, 1/fan_in) truncated at two
// standard deviations, E with standard deviation 0.02. The encoding's parameters stand behind the
// network's own, so that models which differ in their encoding alone start from the same weights.
#ifndef LENGTHWISE_MODELS_NETWORKS_ENCODER_H_
#define LENGTHWISE_MODELS_NETWORKS_ENCODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/networks/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Network;
struct NetworkShape;

const NetworkEntry& EncoderEntry();

// As CreateNetwork.
absl::StatusOr<std::unique_ptr<Network>> CreateEncoder(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
    ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_ENCODER_H_
