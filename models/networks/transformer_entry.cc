#include "models/networks/transformer_entry.h"

#include "absl/strings/str_cat.h"

namespace lengthwise::models {

catalogue::ParameterEntry HeadsParameter(int64_t default_value) {
  return {.name = "heads",
          .default_value = default_value,
          .documentation = "Attention heads; a divisor of d_model.",
          .minimum = 1,
          .maximum = 256};
}

catalogue::ParameterEntry WidthParameter(int64_t default_value) {
  return {.name = "d_model",
          .default_value = default_value,
          .documentation = "Features of a token.",
          .minimum = 1,
          .maximum = 8192};
}

void CheckHeads(const catalogue::Parameters& parameters, absl::string_view path,
                std::vector<catalogue::Problem>& problems) {
  const int64_t heads = parameters.Int("heads"), d_model = parameters.Int("d_model");
  if (d_model % heads == 0) return;
  problems.push_back({.field = absl::StrCat(path, ".heads"),
                      .description = absl::StrCat(heads, " heads do not divide d_model = ", d_model,
                                                  "; use a divisor of it")});
}

EncodingContext TransformerContext(const catalogue::Parameters& parameters) {
  return {.d_model = parameters.Int("d_model"),
          .heads = parameters.Int("heads"),
          .blocks = parameters.Int("blocks")};
}

}  // namespace lengthwise::models
