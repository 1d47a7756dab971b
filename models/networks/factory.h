// Factory functions of the networks. Each network's own file defines its CreateNAME.
#ifndef LENGTHWISE_MODELS_NETWORKS_FACTORY_H_
#define LENGTHWISE_MODELS_NETWORKS_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/networks/all_networks.h"
#include "models/networks/language_model.h"
#include "models/networks/network.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Creates a network with its encoding. The parameters of both have passed the catalogue's checks.
template <typename Model, typename Shape>
using CreateModel = absl::StatusOr<std::unique_ptr<Model>>(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const Shape& shape, ParameterLayout& layout);

#define LENGTHWISE_CREATE(Name, Made) CreateModel<Network, NetworkShape> Create##Made;
LENGTHWISE_NETWORKS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE
#define LENGTHWISE_CREATE(Name, Made) CreateModel<LanguageModel, LanguageModelShape> Create##Made;
LENGTHWISE_LANGUAGE_MODELS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_FACTORY_H_
