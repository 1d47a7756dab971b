#include "models/encodings/positions.h"
#include "models/encodings/sin_cos.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
  if (!context.as_vectors) CheckEvenWidth(context.d_model, path, problems);
}

std::vector<catalogue::ParameterEntry> Parameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(
      {.name = "interleaved",
       .default_value = false,
       .documentation = "Sine and cosine of a frequency stand side by side, as in the formula of "
                        "Vaswani et al. 2017, instead of all sines before all cosines. Only what "
                        "is compared feature by feature depends on it."});
  return parameters;
}

}  // namespace

const EncodingEntry& SinCosEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "sin_cos",
       .title = "sin / cos",
       .documentation =
           "Sines and cosines of the position at d_model / 2 frequencies, from 1 down to nearly "
           "1 / 10000, added to the embeddings (Vaswani et al. 2017, section 3.5). As vectors, at "
           "a quarter as many frequencies as the longest sequence has tokens (positional "
           "attention, appendix C.3).",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check,
      /*is_added=*/true,
      /*gives_vectors=*/true};
  return entry;
}

}  // namespace lengthwise::models
