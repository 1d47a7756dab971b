#include "models/encodings/none.h"

#include <utility>

#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"

namespace lengthwise::models {

std::unique_ptr<Encoding> CreateNone(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  // Every hook of the base class contributes nothing.
  auto none = std::make_unique<Encoding>();
  if (!parameters.Bool("causal")) return none;
  return MakeCausal(std::move(none));
}

}  // namespace lengthwise::models
