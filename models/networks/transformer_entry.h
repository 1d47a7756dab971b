// What the catalogue entries of Transformers have in common: blocks, heads and d_model. No
// LibTorch.
#ifndef LENGTHWISE_MODELS_NETWORKS_TRANSFORMER_ENTRY_H_
#define LENGTHWISE_MODELS_NETWORKS_TRANSFORMER_ENTRY_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"

namespace lengthwise::models {

// A NetworkEntry::check: appends a problem unless the heads divide d_model.
void CheckHeads(const catalogue::Parameters& parameters, absl::string_view path,
                std::vector<catalogue::Problem>& problems);

// A NetworkEntry::encoding_context.
EncodingContext TransformerContext(const catalogue::Parameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_TRANSFORMER_ENTRY_H_
