// Rotary encoding (RoFormer: Su et al. 2021, section 3.2.2): each pair of a head's features 2i, 2i
// + 1 of queries and keys is turned by the angle p f_i, f_i = 10000^(-2i/dh), so that their product
// depends on the difference of positions.
#ifndef LENGTHWISE_MODELS_ENCODINGS_ROPE_H_
#define LENGTHWISE_MODELS_ENCODINGS_ROPE_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& RopeEntry();

// d_model / heads must be even. Of the parameters it reads "turned_by" alone.
std::unique_ptr<Encoding> CreateRope(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ROPE_H_
