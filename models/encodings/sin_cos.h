// Sinusoids of the positions, added to the embeddings (Vaswani et al. 2017, section 3.5).
#ifndef LENGTHWISE_MODELS_ENCODINGS_SIN_COS_H_
#define LENGTHWISE_MODELS_ENCODINGS_SIN_COS_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& SinCosEntry();

// d_model must be even.
std::unique_ptr<Encoding> CreateSinCos(const catalogue::Parameters& parameters,
                                       const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SIN_COS_H_
