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

std::vector<catalogue::ParameterEntry> Parameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back({.name = "stddev",
                        .default_value = 1.0,
                        .documentation = "Standard deviation of what the table starts from: small "
                                         "ones help on unseen puzzles (relational reasoning on "
                                         "Latin squares, Figure 3).",
                        .minimum = 0,
                        .maximum = 100});
  parameters.push_back({.name = "distribution",
                        .default_value = std::string("truncated_normal"),
                        .documentation = "Of what the table starts from: normal, or truncated at "
                                         "two standard deviations.",
                        .allowed = {"truncated_normal", "normal"}});
  parameters.push_back({.name = "trained",
                        .default_value = true,
                        .documentation = "False: the table stays the random one that it starts as "
                                         "(\"random\" of relational reasoning)."});
  return parameters;
}

}  // namespace

const EncodingEntry& LearnedEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "learned",
       .title = "Learned",
       .documentation =
           "A table of max_position learned vectors, one added to the embedding of each token; a "
           "network that adds the encoding in every block has a table for each. "
           "Randomized it is the label encoding of Li and McClelland (2022); otherwise the rows of "
           "lengths that training never showed stay what they were initialised to.",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
