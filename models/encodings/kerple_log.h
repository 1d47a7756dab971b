// KERPLE's logarithmic kernel (Chi et al. 2022, section 4): head h adds
//
//   -r1_h log(1 + r2_h |p_i - p_j|)
//
// to its logits, with r1 and r2 of at least 0.01 that all blocks share.
#ifndef LENGTHWISE_MODELS_ENCODINGS_KERPLE_LOG_H_
#define LENGTHWISE_MODELS_ENCODINGS_KERPLE_LOG_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& KerpleLogEntry();

std::unique_ptr<Encoding> CreateKerpleLog(const catalogue::Parameters& parameters,
                                          const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_KERPLE_LOG_H_
