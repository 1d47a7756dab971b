#include "models/encodings/one_hot.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
}

std::vector<catalogue::ParameterEntry> Parameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(
      {.name = "last_apart",
       .default_value = true,
       .documentation = "The last token of a sequence, a scratchpad, has the last vector at every "
                        "length, as in the paper's released code; not where positions are "
                        "randomized. False: the vector of its position."});
  return parameters;
}

}  // namespace

const EncodingEntry& OneHotEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "one_hot",
       .title = "One-hot",
       .documentation =
           "A vector with a place for every position, 1 at the token's own and 0 elsewhere, for "
           "networks that take positions as vectors (positional attention, section 4). It has as "
           "many places as the longest sequence has tokens; randomized, max_position.",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check,
      /*is_added=*/false,
      /*gives_vectors=*/true};
  return entry;
}

}  // namespace lengthwise::models
