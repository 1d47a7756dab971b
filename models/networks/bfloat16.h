// Decorators of networks for training.precision: bfloat16.
#ifndef LENGTHWISE_MODELS_NETWORKS_BFLOAT16_H_
#define LENGTHWISE_MODELS_NETWORKS_BFLOAT16_H_

#include <memory>

#include "models/networks/language_model.h"
#include "models/networks/network.h"

namespace lengthwise::models {

// Computes the network's products in bfloat16 (models/layers/products.h), in training and
// evaluation. Parameters, their gradients and results stay float32.
std::unique_ptr<Network> WithBfloat16Products(std::unique_ptr<Network> inner);
std::unique_ptr<LanguageModel> WithBfloat16Products(std::unique_ptr<LanguageModel> inner);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_BFLOAT16_H_
