// All optimizers and learning-rate schedules by name, without LibTorch.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_

#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::models {

// Live forever.
absl::Span<const catalogue::Entry* const> OptimizerEntries();
absl::Span<const catalogue::Entry* const> ScheduleEntries();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_
