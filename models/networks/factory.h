// Factory functions of the networks. Each network's own file defines its CreateNAME.
#ifndef LENGTHWISE_MODELS_NETWORKS_FACTORY_H_
#define LENGTHWISE_MODELS_NETWORKS_FACTORY_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "catalogue/entry.h"
#include "models/encodings/encoding.h"
#include "models/networks/catalogue.h"
#include "models/networks/language_model.h"
#include "models/networks/network.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// What a network is made of. All of it has passed the catalogue's checks.
struct NetworkParts {
  const catalogue::Parameters& parameters;
  // Both columns of a network that continues text are its vocabulary.
  const NetworkShape& shape;
  ParameterLayout& layout;
  // The network's encoding_context.
  const EncodingContext& context;
  // Makes the encoding and adds its parameters to the layout. Of the shape, the sizes of the
  // context and of the sequences are filled in.
  absl::FunctionRef<std::unique_ptr<Encoding>(EncodingShape)> make_encoding;
};

template <typename Model>
using CreateModel = std::unique_ptr<Model>(const NetworkParts& parts);

#define LENGTHWISE_CREATE(Name, Made) CreateModel<Network> Create##Made;
LENGTHWISE_NETWORKS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE
#define LENGTHWISE_CREATE(Name, Made) CreateModel<LanguageModel> Create##Made;
LENGTHWISE_LANGUAGE_MODELS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_FACTORY_H_
