// What a specification's training says of its data: whose fixed data set it is and how long an
// epoch takes, and how examples of text are packed, also where fields are not there.
#ifndef LENGTHWISE_SPECIFICATION_TRAINING_DATA_H_
#define LENGTHWISE_SPECIFICATION_TRAINING_DATA_H_

#include <cstdint>

#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

inline constexpr int64_t kMostEpochs = 1'000'000'000;

// Of the data set of a trial with this data seed.
inline uint64_t DataSetSeed(const v1::Training& training, uint64_t data_seed) {
  return training.has_data_set_seed() ? training.data_set_seed() : data_seed;
}

// Whether the data set is of text and gone through in epochs.
inline bool GoesThroughText(const v1::Training& training) {
  return training.has_packing() && training.examples() > 0 && training.without_replacement();
}

// 0 where every step draws new examples, and where the fields that say how many steps there are are
// wrong.
int64_t StepsPerEpoch(const v1::Training& training);

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

#endif  // LENGTHWISE_SPECIFICATION_TRAINING_DATA_H_
