// Relative position representations of Shaw et al. 2018, of keys alone (relational reasoning on
// Latin squares, section 3.3):
//
//   logits[i, j] = q_i . (k_j + a_clip(p_j - p_i)) / sqrt(dh)
//
// with a table a of 2k + 1 learned vectors for the distances -k .. k in every block, which its
// heads share; farther tokens have the distance k or -k.
#ifndef LENGTHWISE_MODELS_ENCODINGS_SHAW_H_
#define LENGTHWISE_MODELS_ENCODINGS_SHAW_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& ShawEntry();

std::unique_ptr<Encoding> CreateShaw(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SHAW_H_
