#include "models/optimizers/catalogue.h"

#include <vector>

#include "models/optimizers/adam.h"
#include "models/optimizers/sgd.h"

namespace lengthwise::models {

absl::Span<const catalogue::Entry* const> OptimizerEntries() {
  static const auto& entries = *new std::vector<const catalogue::Entry*>{
      &AdamEntry(),
      &AdamWEntry(),
      &SgdEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
