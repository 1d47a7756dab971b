// Epochs of a fixed data set as steps.
#ifndef LENGTHWISE_SPECIFICATION_EPOCHS_H_
#define LENGTHWISE_SPECIFICATION_EPOCHS_H_

#include <cstdint>

#include "proto/specification.pb.h"

namespace lengthwise::specification {

inline constexpr int64_t kMostEpochs = 1'000'000'000;

// 0 where every step draws new examples, and where the fields that say how many steps there are are
// wrong.
int64_t StepsPerEpoch(const v1::Training& training);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EPOCHS_H_
