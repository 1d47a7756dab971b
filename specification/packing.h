// What training.packing says, also where a field is not there.
#ifndef LENGTHWISE_SPECIFICATION_PACKING_H_
#define LENGTHWISE_SPECIFICATION_PACKING_H_

#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Whether positions start again in each example. What was stored before that could be asked for
// lacks the field.
inline bool RestartsPositions(const v1::Packing& packing) {
  return packing.has_reset_positions() ? packing.reset_positions() : !packing.attend_across();
}

// Whether the examples of a sequence are one to attention or to positions, and so as long as it.
inline bool JoinsExamples(const v1::Packing& packing) {
  return packing.attend_across() || !RestartsPositions(packing);
}

// Whether prompts may see themselves whole: no loss is of a prompt's tokens, and every example is
// one of its own.
inline bool CountsAnswersApart(const v1::Packing& packing) {
  return packing.answers_only() && !JoinsExamples(packing);
}

// Whether a network with these parameters lets prompts see themselves whole.
inline bool SeesWholePrompts(const catalogue::Parameters& network) {
  return network.values().contains("prompt_attention") &&
         network.String("prompt_attention") == "bidirectional";
}

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PACKING_H_
