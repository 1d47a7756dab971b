// The protocol of "Positional Attention: Out-of-Distribution Generalization and Expressivity for
// Neural Algorithmic Reasoning".
#ifndef LENGTHWISE_SPECIFICATION_PROTOCOLS_POSITIONAL_ATTENTION_H_
#define LENGTHWISE_SPECIFICATION_PROTOCOLS_POSITIONAL_ATTENTION_H_

#include "specification/protocols.h"

namespace lengthwise::specification {

const ProtocolEntry& PositionalAttention();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PROTOCOLS_POSITIONAL_ATTENTION_H_
