// Functional interpolation for relative positions (FIRE: Li et al. 2024): a small network makes
// every head's term of how far key and query are apart, as a share of how far they can be:
//
//   b_h(i, j) = f_h( psi(|p_i - p_j|) / (psi(max(|L|, p_i)) + 1e-6) ),  psi(x) = log(|c x| + 1)
//
// f is Linear(1, width), ReLU, Linear(width, H), shared by all blocks, as are c and the threshold L
// = multiplier * threshold, both of which are learned. In a network that is not causal, where the
// key may be the later of the two, the larger of p_i and p_j stands for p_i: so the share is the
// same in both directions and never above 1, and for keys before the query nothing is different.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FIRE_H_
#define LENGTHWISE_MODELS_ENCODINGS_FIRE_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& FireEntry();

std::unique_ptr<Encoding> CreateFire(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FIRE_H_
