// Factory functions of the encodings. Each encoding's own file defines its CreateNAME.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FACTORY_H_
#define LENGTHWISE_MODELS_ENCODINGS_FACTORY_H_

#include <memory>

#include "models/encodings/all_encodings.h"
#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Creates the encoding and adds its parameters to the layout, named as for CreateEncoding.
// `parameters` are resolved with the encoding's entry and have passed its check.
#define LENGTHWISE_CREATE(Name)                                                   \
  std::unique_ptr<Encoding> Create##Name(const catalogue::Parameters& parameters, \
                                         const EncodingShape& shape, ParameterLayout& layout);
LENGTHWISE_ENCODINGS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FACTORY_H_
