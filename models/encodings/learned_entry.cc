#include <string>

#include "absl/strings/str_cat.h"
#include "models/encodings/learned.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckRandomizedOptions(parameters, path, problems);
  const int64_t rows = parameters.Int("max_position");
  if (context.longest_sequence <= rows) return;
  problems.push_back(
      {.field = absl::StrCat(path, ".max_position"),
       .description = absl::StrCat("a table of ", rows,
                                   " positions does not reach for the longest "
                                   "sequence, ",
                                   context.longest_sequence,
                                   " tokens of input and output; use a larger max_position or "
                                   "shorter lengths")});
}

}  // namespace

const EncodingEntry& LearnedEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "learned",
       .title = "Learned",
       .documentation =
           "A table of max_position learned vectors, one added to the embedding of each token. "
           "Randomized it is the label encoding of Li and McClelland (2022); otherwise the rows of "
           "lengths that training never showed stay what they were initialised to.",
       .parameters = PositionParameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
