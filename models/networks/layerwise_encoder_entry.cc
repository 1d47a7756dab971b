#include <string>

#include "models/networks/layerwise_encoder.h"
#include "models/networks/transformer_entry.h"

namespace lengthwise::models {

const NetworkEntry& LayerwiseEncoderEntry() {
  static const NetworkEntry& entry = *new NetworkEntry{
      {.name = "layerwise_encoder",
       .title = "Transformer encoder, encoding in every layer",
       .documentation =
           "A Transformer encoder that adds the positional encoding again in every block, each "
           "block its own, and reads the answer out at the last token (relational reasoning on "
           "Latin squares, section 3.2).",
       .parameters =
           {{.name = "blocks",
             .default_value = int64_t{4},
             .documentation = "Blocks of attention and feed-forward layers.",
             .minimum = 1,
             .maximum = 256},
            HeadsParameter(1),
            WidthParameter(160),
            {.name = "d_ff",
             .default_value = int64_t{0},
             .documentation = "Features between the two feed-forward layers; 0 means 4 * d_model.",
             .minimum = 0,
             .maximum = 32768},
            {.name = "outer_gelu",
             .default_value = true,
             .documentation =
                 "A gelu behind the second feed-forward layer, too, as in the released code."},
            {.name = "attention_biases",
             .default_value = std::string("all"),
             .documentation = "Biases of attention's projections: \"all\"; \"inputs\", those of "
                              "queries, keys and values alone; \"none\". The released code has "
                              "none with rope and causal attention, and those of the inputs with "
                              "the relative encoding.",
             .allowed = {"all", "inputs", "none"}},
            {.name = "output_projection",
             .default_value = true,
             .documentation = "A linear layer behind attention. The released code has none with "
                              "the relative encoding."},
            {.name = "temperature",
             .default_value = 1.0,
             .documentation = "What the logits of attention are divided by. The released code has "
                              "0.01 with causal attention.",
             .minimum = 1e-6,
             .maximum = 1e6},
            {.name = "encoding_dropout",
             .default_value = 0.0,
             .documentation =
                 "Dropout of the features that a block's encoding was added to, in training and at "
                 "evaluation alike; of encodings that are added. The released code has 0.1 with "
                 "the "
                 "fixed encodings, which it never turns off; the paper has none.",
             .minimum = 0,
             .maximum = 0.99}}},
      /*task_kinds=*/{tasks::TaskKind::kTransduction, tasks::TaskKind::kPuzzle},
      CheckHeads,
      TransformerContext};
  return entry;
}

}  // namespace lengthwise::models
