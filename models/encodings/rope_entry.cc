#include <string>

#include "absl/strings/str_cat.h"
#include "models/encodings/positions.h"
#include "models/encodings/rope.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, const EncodingContext& context,
           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckPositions(parameters, context.longest_sequence, path, problems);
  if (context.d_model % (2 * context.heads) == 0) return;
  problems.push_back(
      {.field = std::string(path),
       .description =
           absl::StrCat("needs an even number of features in each head; the network has d_model = ",
                        context.d_model, " and ", context.heads, " heads")});
}

std::vector<catalogue::ParameterEntry> RopeParameters() {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.push_back(DrawsParameter());
  parameters.push_back(
      {.name = "turned_by",
       .default_value = std::string("tokens"),
       .documentation = "What turns queries and keys: the position of their \"tokens\" or, as in "
                        "the released code of positional attention, the number of their "
                        "\"heads\", which changes no logit.",
       .allowed = {"tokens", "heads"}});
  return parameters;
}

}  // namespace

const EncodingEntry& RopeEntry() {
  static const EncodingEntry& entry = *new EncodingEntry{
      {.name = "rope",
       .title = "RoPE",
       .documentation = "Rotary encoding: pairs of features of queries and keys are turned by "
                        "angles proportional to the position (RoFormer: Su et al. 2021).",
       .parameters = RopeParameters()},
      /*uses_positions=*/true,
      Check};
  return entry;
}

}  // namespace lengthwise::models
