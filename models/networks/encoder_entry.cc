#include <string>

#include "absl/strings/str_cat.h"
#include "models/networks/encoder.h"
#include "models/networks/transformer_entry.h"

namespace lengthwise::models {
namespace {

void Check(const catalogue::Parameters& parameters, absl::string_view path,
           std::vector<catalogue::Problem>& problems) {
  CheckHeads(parameters, path, problems);
  if (parameters.Bool("dropout_at_evaluation") && parameters.Double("dropout") == 0) {
    problems.push_back({.field = absl::StrCat(std::string(path), ".dropout_at_evaluation"),
                        .description = "there is no dropout; set dropout, or leave it out"});
  }
}

}  // namespace

const NetworkEntry& EncoderEntry() {
  static const NetworkEntry& entry = *new NetworkEntry{
      {.name = "encoder",
       .title = "Transformer encoder",
       .documentation = "A bidirectional Transformer encoder with layer norm after each residual "
                        "addition (Vaswani et al. 2017; randomized positional encodings, section "
                        "4). It reads the input and one empty token per output.",
       .parameters = {{.name = "blocks",
                       .default_value = int64_t{5},
                       .documentation = "Blocks of attention and feed-forward layers.",
                       .minimum = 1,
                       .maximum = 256},
                      HeadsParameter(8),
                      WidthParameter(64),
                      {.name = "d_ff",
                       .default_value = int64_t{0},
                       .documentation =
                           "Features between the two feed-forward layers; 0 means 4 * d_model.",
                       .minimum = 0,
                       .maximum = 32768},
                      {.name = "attention",
                       .default_value = std::string("softmax"),
                       .documentation =
                           "\"softmax\", or \"geometric\": to the nearest key that matches, with "
                           "directional encoding (Csordas et al. 2022; Table 5, where the encoding "
                           "is none).",
                       .allowed = {"softmax", "geometric"}},
                      {.name = "dropout",
                       .default_value = 0.0,
                       .documentation =
                           "Probability of dropping a feature of what attention and feed-forward "
                           "layers add, and of embeddings that an encoding was added to. The "
                           "paper's published code has 0.1.",
                       .minimum = 0,
                       .maximum = 0.95},
                      {.name = "dropout_at_evaluation",
                       .default_value = false,
                       .documentation = "Drops in evaluations too, as the paper's published code "
                                        "does."},
                      {.name = "extra_input_columns",
                       .default_value = int64_t{0},
                       .documentation =
                           "Rows of the embedding beyond the task's input tokens and the empty "
                           "token, which no token takes. With 1, tasks on bits have the 249,026 "
                           "parameters that the paper prints (270,146 with the relative encoding).",
                       .minimum = 0,
                       .maximum = 1024}}},
      /*task_kinds=*/{tasks::TaskKind::kTransduction, tasks::TaskKind::kPuzzle},
      Check,
      TransformerContext};
  return entry;
}

}  // namespace lengthwise::models
