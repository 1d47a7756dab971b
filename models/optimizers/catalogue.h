// Catalogue of all optimizers by name, without LibTorch.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_

#include "absl/types/span.h"
#include "catalogue/entry.h"

// All optimizers, in display order. Each line joins a section of catalogue.cc, the function NAME(),
// to an implementation, CreateNAME() of optimizer.h.
// clang-format off
#define LENGTHWISE_OPTIMIZERS(OPTIMIZER) \
  OPTIMIZER(Adam) \
  OPTIMIZER(AdamW) \
  OPTIMIZER(Sgd)
// clang-format on

namespace lengthwise::models {

// All entries. They live forever.
absl::Span<const catalogue::Entry* const> OptimizerEntries();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_CATALOGUE_H_
