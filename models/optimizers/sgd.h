// Stochastic gradient descent, with momentum where asked for:
//
//   m = momentum * m + g;  parameters -= rate * m
//
// as torch.optim.SGD computes it without dampening.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_SGD_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_SGD_H_

#include <memory>

#include "catalogue/entry.h"

namespace lengthwise::models {

class Optimizer;

const catalogue::Entry& SgdEntry();

std::unique_ptr<Optimizer> CreateSgd(const catalogue::Parameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_SGD_H_
