#include "absl/strings/str_cat.h"
#include "models/encodings/positions.h"
#include "models/encodings/t5.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
  const int64_t buckets = parameters.Int("buckets"), farthest = parameters.Int("max_distance");
  if (buckets % 4 != 0) {
    problems.push_back(
        {.field = absl::StrCat(path, ".buckets"),
         .description = absl::StrCat(
             buckets,
             " buckets cannot be halved for directions and again for exact distances; use "
             "a multiple of 4")});
  }
  if (2 * farthest <= buckets) {
    problems.push_back(
        {.field = absl::StrCat(path, ".max_distance"),
         .description = absl::StrCat(farthest, " is no farther than the exact half of ", buckets,
                                     " buckets; use more than ", buckets / 2)});
  }
}

std::vector<catalogue::ParameterEntry> Parameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(DrawsParameter());
  parameters.push_back({.name = "buckets",
                        .default_value = int64_t{32},
                        .documentation = "Learned numbers of a head, a multiple of 4; half of them "
                                         "for each direction where the network sees both.",
                        .minimum = 4,
                        .maximum = 65536});
  parameters.push_back({.name = "max_distance",
                        .default_value = int64_t{128},
                        .documentation = "From here on all distances share the last bucket.",
                        .minimum = 3,
                        .maximum = 1 << 20});
  return parameters;
}

}  // namespace

const EncodingEntry& T5Entry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "t5",
       .title = "T5",
       .documentation =
           "A learned number for each head and bucket of distances, added to the logits and shared "
           "by all blocks; near distances have a bucket each, far ones share them by their "
           "logarithm (Raffel et al. 2020, section 2.1).",
       .parameters = Parameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
