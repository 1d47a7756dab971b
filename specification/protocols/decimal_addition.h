// Zhou et al. 2024.
#ifndef LENGTHWISE_SPECIFICATION_PROTOCOLS_DECIMAL_ADDITION_H_
#define LENGTHWISE_SPECIFICATION_PROTOCOLS_DECIMAL_ADDITION_H_

#include "specification/protocols.h"

namespace lengthwise::specification {

const ProtocolEntry& DecimalAddition();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PROTOCOLS_DECIMAL_ADDITION_H_
