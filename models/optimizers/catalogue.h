// Catalogue of all optimizers by name, without LibTorch.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_

#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::models {

// All entries. They live forever.
absl::Span<const catalogue::Entry* const> OptimizerEntries();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_
