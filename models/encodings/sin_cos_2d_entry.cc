#include "absl/strings/str_cat.h"
#include "models/encodings/sin_cos_2d.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  if (context.d_model % 4 == 0) return;
  problems.push_back(
      {.field = std::string(path),
       .description = absl::StrCat("pairs of sine and cosine for columns and rows do not fill "
                                   "d_model = ",
                                   context.d_model, "; use a multiple of 4")});
}

}  // namespace

const EncodingEntry& SinCos2dEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "sin_cos_2d",
       .title = "2d sin / cos",
       .documentation =
           "Sines and cosines of the column in the first half of the features and of "
           "the row in the second, for tokens that are the cells of a grid, row by row "
           "(relational reasoning on Latin squares, section 3.3).",
       .parameters = {{.name = "columns",
                       .default_value = int64_t{4},
                       .documentation = "Cells of a row of the grid.",
                       .minimum = 1,
                       .maximum = 100'000}}},
      /*uses_positions=*/false,
      Check};
  return entry;
}

}  // namespace lengthwise::models
