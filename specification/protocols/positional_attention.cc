// The protocol of "Positional Attention: Out-of-Distribution Generalization and Expressivity for
// Neural Algorithmic Reasoning".
#include "specification/catalogues.h"

namespace lengthwise::specification {

const ProtocolEntry& PositionalAttention() {
  static const ProtocolEntry& entry = *new ProtocolEntry{
      {.name = "positional_attention",
       .title = "Positional Attention",
       .documentation =
           "\"Positional Attention: Out-of-Distribution Generalization and Expressivity for Neural "
           "Algorithmic Reasoning\", section 6 and appendix C. Trained on 30,000 vectors of 8 "
           "numbers for 2,001 epochs in batches of 1,000 (the paper does not state the batch "
           "size). The learning rate is reduced by 10 % after 50 epochs without improvement. "
           "Tested on 1,000 vectors at each scale of the numbers from 1 to 10. Ten runs; the paper "
           "shows their median and 10th and 90th percentiles."},
      // Positional attention, then its baselines.
      R"yaml(
tasks: [cumulative_sum, cumulative_min, cumulative_median, sorting, cumulative_max_sum_subarray]
networks:
  - {name: positional_attention, label: positional}
  - {name: positional_attention, attention_by: input, input_positions: true, label: standard}
encodings: one_hot
learning_rates: 5e-4
seeds: [0..9]
training:
  epochs: 2001
  examples: 30000
  batch_size: 1000
  lengths: 8..8
  optimizer: adam
  schedule: {name: plateau, factor: 0.9, patience: 50, min_rate: 1e-6, threshold: 1e-4}
  clip_norm: 0
evaluation:
  lengths: [1..10]
  sequences: 1000
)yaml",
      // Repository opallab/positional_attention, commit 21170fa, and the parameters stored with its
      // results.
      ReferenceCode{.components = "encodings: {name: rope, turned_by: heads}",
                    .several_lengths = R"yaml(
learning_rates: 1e-4
training: {batch_size: 2048}
evaluation: {sequences: 2000}
)yaml"}};
  return entry;
}

}  // namespace lengthwise::specification
