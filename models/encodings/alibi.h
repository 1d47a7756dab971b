// Attention with linear biases (Press et al. 2022), bidirectional: every head adds -slope *
// distance to its logits.
//
// distance(i, j) is |p_j - p_i| for positions p; with the parameter distances = "offsets" it is
// p_|j - i|, one draw for all pairs of tokens as far apart, as in the published code of randomized
// positional encodings.
#ifndef LENGTHWISE_MODELS_ENCODINGS_ALIBI_H_
#define LENGTHWISE_MODELS_ENCODINGS_ALIBI_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& AlibiEntry();

// Slopes of `heads` heads: 2^(-8k/heads), k = 1 .. heads, for a power of two; for others those of
// the next lower power of two and then every other one of the next higher, as in the authors' code.
std::vector<double> AlibiSlopes(int64_t heads);

std::unique_ptr<Encoding> CreateAlibi(const catalogue::Parameters& parameters,
                                      const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ALIBI_H_
