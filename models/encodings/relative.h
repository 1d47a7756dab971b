// Relative encoding of Transformer-XL (Dai et al. 2019, section 3.3), bidirectional, with the
// signed distance from query to key as in the reference code of randomized positional encodings:
//
//   logits[i, j] = ((q_i + u) . k_j + (q_i + v) . (PE(distance(i, j)) W_R)) / sqrt(dh)
//
// where u, v [H, dh] and W_R [d, d] are parameters of every block.
//
// distance(i, j) is p_j - p_i for positions p: j - i for plain positions, the paper's randomized
// distance for drawn ones. With the parameter distances = "offsets" it is sign(j - i) * p_|j - i|:
// every pair of tokens m places apart has the same distance p_m, as in the paper's published code.
// That code's table of sinusoids is too short; with clamped_table = true so is this one's, and the
// distance is L - 1 for j >= i and L - p_|j - i| for j < i.
#ifndef LENGTHWISE_MODELS_ENCODINGS_RELATIVE_H_
#define LENGTHWISE_MODELS_ENCODINGS_RELATIVE_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& RelativeEntry();

// d_model must be even.
std::unique_ptr<Encoding> CreateRelative(const catalogue::Parameters& parameters,
                                         const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_RELATIVE_H_
