// What every program says alike of an evaluation: whether its columns fit together, and its mean
// accuracies over the lengths that training had and those that it had not.
#ifndef LENGTHWISE_PROTO_LENGTH_ACCURACIES_H_
#define LENGTHWISE_PROTO_LENGTH_ACCURACIES_H_

#include <cstdint>
#include <string>

#include "proto/event.pb.h"

namespace lengthwise {

// Says what is wrong with `accuracies`: columns of different lengths, or a metric without a name.
// Empty where nothing is. The server checks every evaluation with it, whether it comes from a
// worker or from the store; whoever has one from the server may rely on it.
std::string LengthAccuraciesProblem(const v1::LengthAccuracies& accuracies);

// Returns the accuracy in 0 to 1 that is nearest; 0 for not-a-number.
double ClampAccuracy(double accuracy);

// Sets `seen_accuracy` to the mean of the clamped accuracies at the lengths up to `seen_up_to`, and
// `unseen_accuracy` to that at longer ones (the score of Ruoss et al. 2023, section 4). Clears the
// one that has no lengths. Lengths without an accuracy do not count.
void SetMeanAccuracies(int32_t seen_up_to, v1::LengthAccuracies& accuracies);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_LENGTH_ACCURACIES_H_
