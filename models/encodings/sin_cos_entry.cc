#include "models/encodings/positions.h"
#include "models/encodings/sin_cos.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
  CheckEvenWidth(context.d_model, path, problems);
}

}  // namespace

const EncodingEntry& SinCosEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "sin_cos",
       .title = "sin / cos",
       .documentation =
           "Sines and cosines of the position at d_model / 2 frequencies, from 1 down to nearly "
           "1 / 10000, added to the embeddings (Vaswani et al. 2017, section 3.5; the sines stand "
           "before the cosines).",
       .parameters = PositionParameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
