#include "models/encodings/binary.h"
#include "models/encodings/positions.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
}

}  // namespace

const EncodingEntry& BinaryEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "binary",
       .title = "Binary",
       .documentation =
           "The position in base two, -1 for a digit 0 and 1 for a digit 1, lowest digit first, "
           "for networks that take positions as vectors (positional attention, appendix C.3). It "
           "has as many digits as tell the positions of the longest sequence apart; randomized, "
           "all below max_position.",
       .parameters = PositionParameters()},
      /*uses_positions=*/true,
      Check,
      /*is_added=*/false,
      /*gives_vectors=*/true};
  return entry;
}

}  // namespace lengthwise::models
