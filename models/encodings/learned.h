// A learned vector for every position, added to the embeddings (Gehring et al. 2017); randomized,
// the label encoding of Li and McClelland 2022.
#ifndef LENGTHWISE_MODELS_ENCODINGS_LEARNED_H_
#define LENGTHWISE_MODELS_ENCODINGS_LEARNED_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& LearnedEntry();

std::unique_ptr<Encoding> CreateLearned(const catalogue::Parameters& parameters,
                                        const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_LEARNED_H_
