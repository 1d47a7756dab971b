#include "models/encodings/fire.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
}

std::vector<catalogue::ParameterEntry> Parameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(DrawsParameter());
  parameters.push_back({.name = "width",
                        .default_value = int64_t{32},
                        .documentation = "Hidden features of the network that makes the term.",
                        .minimum = 1,
                        .maximum = 1024});
  parameters.push_back({.name = "c",
                        .default_value = 0.1,
                        .documentation = "What the learned factor of distances starts from.",
                        .minimum = 1e-6,
                        .maximum = 1e6});
  parameters.push_back(
      {.name = "threshold",
       .default_value = 512.0,
       .documentation = "What the learned threshold L starts from: queries at smaller positions "
                        "take their distances as shares of L, the others of their position.",
       .minimum = 1e-3,
       .maximum = 1e6});
  return parameters;
}

}  // namespace

const EncodingEntry& FireEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "fire",
       .title = "FIRE",
       .documentation =
           "A small network, shared by all blocks, makes each head's addition to the logits of the "
           "distance from query to key as a share of the query's position (Li et al. 2024, "
           "functional interpolation for relative position encodings). In networks that see both "
           "directions the later of query and key takes the query's place.",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
