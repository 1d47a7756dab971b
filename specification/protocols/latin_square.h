// Ito et al. 2024.
#ifndef LENGTHWISE_SPECIFICATION_PROTOCOLS_LATIN_SQUARE_H_
#define LENGTHWISE_SPECIFICATION_PROTOCOLS_LATIN_SQUARE_H_

#include "specification/protocols.h"

namespace lengthwise::specification {

const ProtocolEntry& LatinSquare();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PROTOCOLS_LATIN_SQUARE_H_
