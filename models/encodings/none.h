// No positional encoding: the encoder then is invariant to the order of its input (randomized
// positional encodings, section 4, "None").
#ifndef LENGTHWISE_MODELS_ENCODINGS_NONE_H_
#define LENGTHWISE_MODELS_ENCODINGS_NONE_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& NoneEntry();

std::unique_ptr<Encoding> CreateNone(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_NONE_H_
