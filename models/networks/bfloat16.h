// Networks' decorators for training.precision: bfloat16.
#ifndef LENGTHWISE_MODELS_NETWORKS_BFLOAT16_H_
#define LENGTHWISE_MODELS_NETWORKS_BFLOAT16_H_

#include <memory>

#include "models/networks/language_model.h"
#include "models/networks/network.h"

namespace lengthwise::models {

// The network with its products in bfloat16 (models/layers/products.h), in training and evaluation
// alike. Parameters and results are float32, as are the gradients of parameters.
std::unique_ptr<Network> WithBfloat16Products(std::unique_ptr<Network> inner);
std::unique_ptr<LanguageModel> WithBfloat16Products(std::unique_ptr<LanguageModel> inner);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_BFLOAT16_H_
