// What the catalogue entries of Transformers have in common: blocks, heads and d_model. No
// LibTorch.
#ifndef LENGTHWISE_MODELS_NETWORKS_TRANSFORMER_ENTRY_H_
#define LENGTHWISE_MODELS_NETWORKS_TRANSFORMER_ENTRY_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"

namespace lengthwise::models {

// The parameters "heads" and "d_model" with these defaults.
catalogue::ParameterEntry HeadsParameter(int64_t default_value);
catalogue::ParameterEntry WidthParameter(int64_t default_value);

// A NetworkEntry::check: appends a problem unless the heads divide d_model.
void CheckHeads(const catalogue::Parameters& parameters, absl::string_view path,
                std::vector<catalogue::Problem>& problems);

// A NetworkEntry::encoding_context.
EncodingContext TransformerContext(const catalogue::Parameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_TRANSFORMER_ENTRY_H_
