// A pack of language models, for text.
#ifndef LENGTHWISE_WORKER_TRAINING_LANGUAGE_PACK_MODEL_H_
#define LENGTHWISE_WORKER_TRAINING_LANGUAGE_PACK_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"

namespace lengthwise::worker::training {

// As CreatePackModel, for a blueprint with text. Members go one by one: each has examples of
// lengths of its own.
absl::StatusOr<std::unique_ptr<PackModel>> CreateLanguagePackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_LANGUAGE_PACK_MODEL_H_
