// The digits of a position in base two as a vector of -1 and 1, the lowest first (positional
// attention, appendix C.3).
#ifndef LENGTHWISE_MODELS_ENCODINGS_BINARY_H_
#define LENGTHWISE_MODELS_ENCODINGS_BINARY_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& BinaryEntry();

std::unique_ptr<Encoding> CreateBinary(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_BINARY_H_
