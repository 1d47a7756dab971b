// A vector for every position that is 1 at the position's own place and 0 elsewhere (positional
// attention, section 4).
#ifndef LENGTHWISE_MODELS_ENCODINGS_ONE_HOT_H_
#define LENGTHWISE_MODELS_ENCODINGS_ONE_HOT_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& OneHotEntry();

std::unique_ptr<Encoding> CreateOneHot(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_ONE_HOT_H_
