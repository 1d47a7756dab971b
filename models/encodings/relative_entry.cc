#include "absl/strings/str_cat.h"
#include "models/encodings/positions.h"
#include "models/encodings/relative.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
  CheckEvenWidth(context.d_model, path, problems);
  if (parameters.Bool("clamped_table") &&
      !(parameters.Bool("randomized") && parameters.String("distances") == "offsets")) {
    problems.push_back({.field = absl::StrCat(path, ".clamped_table"),
                        .description = "the clamped table is one of randomized offsets; set "
                                       "randomized: true and distances: offsets, or leave it out"});
  }
}

std::vector<catalogue::ParameterEntry> RelativeParameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(DrawsParameter());
  parameters.push_back(DistancesParameter());
  parameters.push_back(
      {.name = "clamped_table",
       .default_value = false,
       .documentation =
           "Repeats a fault of the paper's published code, whose table of sinusoids ends too "
           "early: "
           "a query has distance max_position - 1 to itself and to all keys behind it, and "
           "max_position less the drawn distance to those before it."});
  return parameters;
}

}  // namespace

const EncodingEntry& RelativeEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "relative",
       .title = "Relative",
       .documentation = "Sinusoids of the signed distance from query to key, projected in every "
                        "block and added to the attention logits with learned content and position "
                        "biases (Transformer-XL: Dai et al. 2019, section 3.3).",
       .parameters = RelativeParameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
