// Zhou et al. 2024.
#include "specification/catalogues.h"

namespace lengthwise::specification {

const ProtocolEntry& DecimalAddition() {
  static const ProtocolEntry& entry = *new ProtocolEntry{
      {.name = "decimal_addition",
       .title = "Length Generalization in Decimal Addition",
       .documentation = "Zhou et al. 2024, \"Transformers Can Achieve Length Generalization But "
                        "Not Robustly\", sections 2 and 3 and Table E.1. Causal language models of "
                        "25M parameters are trained on additions of up to 40 digits, with 128 "
                        "sequences of 2,048 tokens a step, and tested on 1 to 100 digits. Ten "
                        "trials of most settings, five of other sizes and lengths of training; the "
                        "paper reports the best."},
      R"yaml(
tasks: decimal_addition
networks: {name: causal_decoder, blocks: 6, heads: 8, d_model: 512, d_ff: 2048}
encodings:
  - {name: fire}
  - {name: rope}
  - {name: kerple_log}
  - {name: none}
  - {name: fire, randomized: true, max_position: 2048}
learning_rates: 3e-4
seeds: 0..9
training:
  steps: 50000
  batch_size: 128
  lengths: 1..40
  optimizer: {name: adamw, weight_decay: 0.1, decayed: matrices}
  schedule: {name: warmup_cosine, warmup_steps: 500, final_factor: 0.1}
  clip_norm: 1
evaluation:
  lengths: 1..100
  sequences: 1000
  select: unseen
)yaml"};
  return entry;
}

}  // namespace lengthwise::specification
