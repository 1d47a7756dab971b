// T5's relative position bias (Raffel et al. 2020, section 2.1): a learned number for each head and
// bucket of distances, shared by all blocks. Distances below half of the buckets have one each, the
// others up to max_distance share the rest by their logarithm, and beyond it all have the last:
//
//   causal, d = p_i - p_j >= 0, h = buckets / 2:
//     d for d < h, otherwise min(h + floor(h log(d / h) / log(max_distance / h)), buckets - 1)
//
// In a network that sees both directions each has half of the buckets: keys behind the query the
// second half, those before it the first.
#ifndef LENGTHWISE_MODELS_ENCODINGS_T5_H_
#define LENGTHWISE_MODELS_ENCODINGS_T5_H_

#include <cstdint>
#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& T5Entry();

// The bucket of a key `distance` >= 0 before the query where it has `buckets`, an even number.
int64_t T5Bucket(int64_t distance, int64_t buckets, int64_t max_distance);

std::unique_ptr<Encoding> CreateT5(const catalogue::Parameters& parameters,
                                   const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_T5_H_
