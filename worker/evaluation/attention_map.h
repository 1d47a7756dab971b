// Attention that a forward pass kept, as an event.
#ifndef LENGTHWISE_WORKER_EVALUATION_ATTENTION_MAP_H_
#define LENGTHWISE_WORKER_EVALUATION_ATTENTION_MAP_H_

#include "ATen/core/Tensor.h"
#include "models/networks/network.h"
#include "proto/event.pb.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::evaluation {

// Of the first member and sequence of `capture`, which read `sequence` with the first draw of
// `positions` [P, S, T], T at least as many.
v1::AttentionMap MakeAttentionMap(const data::GivenSequence& sequence, const at::Tensor& positions,
                                  const models::Capture& capture);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_ATTENTION_MAP_H_
