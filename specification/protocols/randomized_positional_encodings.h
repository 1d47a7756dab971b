// Ruoss et al. 2023.
#ifndef LENGTHWISE_SPECIFICATION_PROTOCOLS_RANDOMIZED_POSITIONAL_ENCODINGS_H_
#define LENGTHWISE_SPECIFICATION_PROTOCOLS_RANDOMIZED_POSITIONAL_ENCODINGS_H_

#include "specification/protocols.h"

namespace lengthwise::specification {

const ProtocolEntry& RandomizedPositionalEncodings();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PROTOCOLS_RANDOMIZED_POSITIONAL_ENCODINGS_H_
