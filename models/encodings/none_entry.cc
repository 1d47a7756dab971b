#include "models/encodings/causal_entry.h"
#include "models/encodings/none.h"

namespace lengthwise::models {

const EncodingEntry& NoneEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "none",
       .title = "None",
       .documentation = "No positional encoding: the network cannot tell the order of its input, "
                        "unless its attention is causal.",
       .parameters = {CausalParameter()}}};
  return entry;
}

}  // namespace lengthwise::models
