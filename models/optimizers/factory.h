// Factory functions of the optimizers. Each optimizer's own file defines its CreateNAME.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_FACTORY_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_FACTORY_H_

#include <memory>

#include "models/optimizers/all_optimizers.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {

#define LENGTHWISE_CREATE(Name) \
  std::unique_ptr<Optimizer> Create##Name(const catalogue::Parameters& parameters);
LENGTHWISE_OPTIMIZERS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_FACTORY_H_
