#include "models/encodings/none.h"

#include "models/encodings/encoding.h"

namespace lengthwise::models {

std::unique_ptr<Encoding> CreateNone(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  // Every hook of the base class contributes nothing.
  return std::make_unique<Encoding>();
}

}  // namespace lengthwise::models
