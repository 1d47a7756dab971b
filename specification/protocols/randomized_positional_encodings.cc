// Ruoss et al. 2023.
#include "specification/catalogues.h"

namespace lengthwise::specification {

const ProtocolEntry& RandomizedPositionalEncodings() {
  static const ProtocolEntry& entry = *new ProtocolEntry{
      {.name = "randomized_positional_encodings",
       .title = "Randomized Positional Encodings",
       .documentation =
           "Ruoss et al., \"Randomized Positional Encodings Boost Length Generalization of "
           "Transformers\", ACL 2023, section 4. Fifteen tasks and eleven encodings, trained on "
           "lengths 1 to 40 for 2,000,000 steps and evaluated on lengths up to 500; three learning "
           "rates, ten seeds. The paper reports the best over learning rates and seeds."},
      R"yaml(
tasks:
  - even_pairs
  - modular_arithmetic
  - parity_check
  - cycle_navigation
  - stack_manipulation
  - reverse_string
  - modular_arithmetic_brackets
  - solve_equation
  - duplicate_string
  - missing_duplicate_string
  - odds_first
  - binary_addition
  - binary_multiplication
  - compute_sqrt
  - bucket_sort
networks: {name: encoder, blocks: 5, heads: 8, d_model: 64}
encodings:
  - none
  - {name: sin_cos, max_position: 2048}
  - {name: relative, max_position: 2048}
  - {name: alibi, max_position: 2048}
  - {name: rope, max_position: 2048}
  - {name: learned, max_position: 2048}
  - {name: sin_cos, max_position: 2048, randomized: true}
  - {name: relative, max_position: 2048, randomized: true}
  - {name: alibi, max_position: 2048, randomized: true}
  - {name: rope, max_position: 2048, randomized: true}
  - {name: learned, max_position: 2048, randomized: true}
learning_rates: [1e-4, 3e-4, 5e-4]
seeds: 0..9
training:
  steps: 2000000
  batch_size: 128
  lengths: 1..40
  optimizer: adam
  schedule: constant
  clip_norm: 1
evaluation:
  lengths: 1..500
  sequences: 500
  select: unseen
)yaml",
      // Repository google-deepmind/randomized_positional_encodings as of 2023-06-21.
      ReferenceCode{.components = R"yaml(
networks: {name: encoder, dropout: 0.1, dropout_at_evaluation: true, extra_input_columns: 1}
encodings:
  - {name: relative, randomized: true, draws: per_block, distances: offsets, clamped_table: true}
  - {name: alibi, half_step: true}
  - {name: alibi, randomized: true, draws: per_block, distances: offsets}
  - {name: rope, randomized: true, draws: per_block}
)yaml"}};
  return entry;
}

}  // namespace lengthwise::specification
