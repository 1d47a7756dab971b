#include "models/encodings/causal_entry.h"
#include "models/encodings/shaw.h"

namespace lengthwise::models {

const EncodingEntry& ShawEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "shaw",
       .title = "Relative (Shaw)",
       .documentation =
           "A learned vector for each distance from query to key, up to `max_distance` either way, "
           "that is added to the key; one table a block (Shaw et al. 2018; relational reasoning on "
           "Latin squares, section 3.3). Causal, it is the released code's relative encoding.",
       .parameters = {{.name = "max_distance",
                       .default_value = int64_t{15},
                       .documentation = "Tokens farther apart count as this far apart.",
                       .minimum = 0,
                       .maximum = 100'000},
                      CausalParameter(),
                      {.name = "stddev",
                       .default_value = 1.0,
                       .documentation = "Standard deviation of the normal distribution that the "
                                        "vectors start from.",
                       .minimum = 0,
                       .maximum = 100}}},
      /*uses_positions=*/false,
      /*check=*/nullptr};
  return entry;
}

}  // namespace lengthwise::models
