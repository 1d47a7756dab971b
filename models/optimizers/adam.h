// Adam (Kingma and Ba 2015, algorithm 1):
//
//   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   parameters -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
//
// as optax.adam and torch.optim.Adam compute it, epsilon outside the root. AdamW (Loshchilov and
// Hutter 2019) first takes rate * weight_decay of each parameter away from it.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_ADAM_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_ADAM_H_

#include <memory>

#include "catalogue/entry.h"

namespace lengthwise::models {

class Optimizer;

const catalogue::Entry& AdamEntry();
const catalogue::Entry& AdamWEntry();

std::unique_ptr<Optimizer> CreateAdam(const catalogue::Parameters& parameters);
std::unique_ptr<Optimizer> CreateAdamW(const catalogue::Parameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_ADAM_H_
