// Reads points of loss curves, the same way in every program.
#ifndef LENGTHWISE_PROTO_TRAINING_POINTS_H_
#define LENGTHWISE_PROTO_TRAINING_POINTS_H_

#include "proto/event.pb.h"

namespace lengthwise {

// Returns the mean loss since the previous point; in an old history, the loss of the batch alone.
inline float MeanLoss(const v1::TrainingPoints& points, int i) {
  return i < points.mean_losses_size() ? points.mean_losses(i) : points.losses(i);
}

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_TRAINING_POINTS_H_
