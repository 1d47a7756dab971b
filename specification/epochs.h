// Fixed data sets: whose they are, and their epochs as steps.
#ifndef LENGTHWISE_SPECIFICATION_EPOCHS_H_
#define LENGTHWISE_SPECIFICATION_EPOCHS_H_

#include <cstdint>

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

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EPOCHS_H_
