// The Transformer decoder of decimal addition (Zhou et al. 2024, section 3 and Table E.1): causal,
// with RMS norms around its layers, a gated feed-forward layer and no biases.
//
//   h = E[token] sqrt(d) + encoding
//   per block:  h = h + N(MHA(N(h)));  h = h + N((gelu(x G) * (x V)) O), x = N(h)
//   logits = N(h) U
//
// for norm = "sandwich"; "residual_post" has h = N(h + f(N(h))), "primer" one norm before attention
// and one behind the feed-forward layer (models/networks/normed_residual.h). U is a matrix of its
// own or, tied, the transposed E.
//
// E and U start as N(0, 1/d), the other matrices as N(0, 1/fan_in) truncated at two standard
// deviations. The paper is silent on both, and on the factor sqrt(d), which is Vaswani et al.'s.
// Dropout, none unless asked for, stands behind the embeddings, attention and feed-forward layers.
// The encoding's parameters stand behind the network's own, so that models which differ in their
// encoding alone start from the same weights.
#ifndef LENGTHWISE_MODELS_NETWORKS_CAUSAL_DECODER_H_
#define LENGTHWISE_MODELS_NETWORKS_CAUSAL_DECODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/networks/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class LanguageModel;
struct LanguageModelShape;

const NetworkEntry& CausalDecoderEntry();

// As CreateLanguageModel.
absl::StatusOr<std::unique_ptr<LanguageModel>> CreateCausalDecoder(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const LanguageModelShape& shape,
    ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_CAUSAL_DECODER_H_
