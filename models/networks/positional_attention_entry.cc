#include <string>

#include "absl/strings/str_cat.h"
#include "models/networks/positional_attention.h"
#include "models/networks/transformer_entry.h"

namespace lengthwise::models {
namespace {

EncodingContext Context(const catalogue::Parameters& parameters) {
  const bool by_input = parameters.String("attention_by") == "input";
  EncodingContext context = TransformerContext(parameters);
  context.as_vectors = !by_input || parameters.Bool("input_positions");
  return context;
}

void Check(const catalogue::Parameters& parameters, absl::string_view path,
           std::vector<catalogue::Problem>& problems) {
  CheckHeads(parameters, path, problems);
  if (parameters.String("rotary") == "none") return;
  const std::string field = absl::StrCat(path, ".rotary");
  if (parameters.String("attention_by") != "input" || !parameters.Bool("input_positions")) {
    problems.push_back({.field = field,
                        .description =
                            "turns queries and keys of an input that has positions already: set "
                            "attention_by: input and input_positions: true, or \"none\" and the "
                            "encoding \"rope\""});
  } else if (parameters.Int("d_model") % 2 != 0) {
    problems.push_back({.field = field,
                        .description = absl::StrCat("turns pairs of features; d_model = ",
                                                    parameters.Int("d_model"), " is odd")});
  }
}

}  // namespace

const NetworkEntry& PositionalAttentionEntry() {
  static const NetworkEntry& entry = *new NetworkEntry{
      {.name = "positional_attention",
       .title = "Positional attention",
       .documentation =
           "A Transformer without residual additions and layer norms whose attention depends on "
           "positions alone (positional attention, section 4); with attention_by: input and "
           "input_positions: true the standard Transformer that the paper compares it with.",
       .parameters =
           {{.name = "attention_by",
             .default_value = std::string("positions"),
             .documentation = "What queries and keys are made of: the positions' vectors; the "
                              "block's \"input\"; or \"both\", one behind the other.",
             .allowed = {"positions", "input", "both"}},
            {.name = "input_positions",
             .default_value = false,
             .documentation = "Whether each number is read with its position's vector behind it."},
            {.name = "rotary",
             .default_value = std::string("none"),
             .documentation =
                 "RoPE beside the positions that the input has: queries and keys are turned by "
                 "their \"tokens\"' positions or, as in the released code of Figure 9, by the "
                 "number "
                 "of their \"heads\", which changes no logit.",
             .allowed = {"none", "tokens", "heads"}},
            {.name = "diagonal_input",
             .default_value = false,
             .documentation = "Whether a token's number stands at the token's own place of a "
                              "vector, 0 elsewhere, and so says where it is (appendix G)."},
            {.name = "blocks",
             .default_value = int64_t{4},
             .documentation = "Blocks of attention and feed-forward layers: ceil(log2 n) + 1 in "
                              "the paper, 4 for vectors of 8 numbers.",
             .minimum = 1,
             .maximum = 256},
            HeadsParameter(2),
            WidthParameter(64),
            {.name = "d_ff",
             .default_value = int64_t{0},
             .documentation = "Features between the two feed-forward layers; 0 means d_model.",
             .minimum = 0,
             .maximum = 32768},
            {.name = "scaled",
             .default_value = true,
             .documentation = "Whether logits are divided by sqrt(d_k), as in the released code; "
                              "equations (2) and (3) do not divide."},
            {.name = "attention_first",
             .default_value = false,
             .documentation = "Whether attention's output stands before the block's input in what "
                              "the feed-forward layers read, as in equation (1); the released code "
                              "has it behind."}}},
      /*task_kinds=*/{tasks::TaskKind::kRegression},
      Check,
      Context};
  return entry;
}

}  // namespace lengthwise::models
