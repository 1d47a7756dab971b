#include "models/encodings/alibi.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
}

std::vector<catalogue::ParameterEntry> AlibiParameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(DrawsParameter());
  parameters.push_back(DistancesParameter());
  parameters.push_back({.name = "half_step",
                        .default_value = false,
                        .documentation =
                            "Takes keys before the query for half a step nearer, so that past and "
                            "future differ, as the paper's published code does."});
  return parameters;
}

}  // namespace

const EncodingEntry& AlibiEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "alibi",
       .title = "ALiBi",
       .documentation = "Attention with linear biases: every head lowers its logits in proportion "
                        "to the distance between query and key (Press et al. 2022), in both "
                        "directions alike.",
       .parameters = AlibiParameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
