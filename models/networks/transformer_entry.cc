#include "models/networks/transformer_entry.h"

#include "absl/strings/str_cat.h"

namespace lengthwise::models {

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
