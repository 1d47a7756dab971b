// Converts the attention captured in a forward pass to an event.
#ifndef LENGTHWISE_WORKER_EVALUATION_ATTENTION_MAP_H_
#define LENGTHWISE_WORKER_EVALUATION_ATTENTION_MAP_H_

#include "ATen/core/Tensor.h"
#include "models/networks/network.h"
#include "proto/event.pb.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::evaluation {

// Returns the map for the first member and sequence of `capture`. The model read `sequence` with
// the first draw of `positions` [P, S, T], where T is at least the sequence's length.
v1::AttentionMap MakeAttentionMap(const data::GivenSequence& sequence, const at::Tensor& positions,
                                  const models::Capture& capture);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_ATTENTION_MAP_H_
