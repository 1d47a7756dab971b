#include "models/encodings/kerple_log.h"
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
  return parameters;
}

}  // namespace

const EncodingEntry& KerpleLogEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "kerple_log",
       .title = "KerpleLog",
       .documentation =
           "Every head lowers its logits by r1 log(1 + r2 distance), with two learned numbers of "
           "at least 0.01 for each head that all blocks share (KERPLE: Chi et al. 2022).",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
