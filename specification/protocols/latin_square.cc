// Ito et al. 2024.
#include "specification/catalogues.h"

namespace lengthwise::specification {

const ProtocolEntry& LatinSquare() {
  static const ProtocolEntry& entry = *new ProtocolEntry{
      {.name = "latin_square",
       .title = "Relational Reasoning on Latin Squares",
       .documentation =
           "Ito et al., \"The Importance of Positional Encoding Initialization in Transformers for "
           "Relational Reasoning\", sections 2 and 3. Trained on 8,000 puzzles for 4,000 epochs "
           "(4,001 in the released code, as here) in the code's batches of 128, validated on 108 "
           "puzzles that differ from all of them; fifteen seeds. Learned encodings differ in the "
           "standard deviation of their initial values. The paper reports mean and standard "
           "deviation over the seeds."},
      // The encodings of Table 1, then those of Table 2.
      R"yaml(
tasks: latin_square
networks: {name: layerwise_encoder, blocks: 4, heads: 1, d_model: 160}
encodings:
  - {name: sin_cos_2d, columns: 4, label: 2d_fixed}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.2, label: learn_0.2}
  - {name: shaw, max_distance: 15, label: relative}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1, trained: false, label: random}
  - {name: rope, label: rope}
  - {name: sin_cos, interleaved: true, label: 1d_fixed}
  - {name: none, label: nope}
  - {name: none, causal: true, label: c_nope}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.1, label: learn_0.1}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.3, label: learn_0.3}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.4, label: learn_0.4}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.5, label: learn_0.5}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.6, label: learn_0.6}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.7, label: learn_0.7}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.8, label: learn_0.8}
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.9, label: learn_0.9}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.0, label: learn_1.0}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.1, label: learn_1.1}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.2, label: learn_1.2}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.3, label: learn_1.3}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.4, label: learn_1.4}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.5, label: learn_1.5}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.6, label: learn_1.6}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.7, label: learn_1.7}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.8, label: learn_1.8}
  - {name: learned, max_position: 16, distribution: normal, stddev: 1.9, label: learn_1.9}
  - {name: learned, max_position: 16, distribution: normal, stddev: 2.0, label: learn_2.0}
learning_rates: 1e-4
seeds: [2235, 6312, 6068, 9742, 8880, 2197, 669, 6256, 3309, 2541, 8643, 7785, 195, 6914, 29]
training:
  epochs: 4001
  examples: 8000
  batch_size: 128
  lengths: 16..16
  optimizer: adam
  schedule: constant
  clip_norm: 0
evaluation:
  lengths: 1..3
  sequences: 36
  select: unseen
)yaml",
      // Repository ljhearne/LSTNN_public, commit d139c51.
      ReferenceCode{
          .components = "encodings: {name: shaw, causal: true}",
          .networks_with_encodings = {
              "{encodings: [sin_cos, sin_cos_2d], networks: {name: layerwise_encoder, "
              "encoding_dropout: 0.1}}",
              "{encodings: shaw, networks: {name: layerwise_encoder, attention_biases: inputs, "
              "attention_initial: linear, output_projection: false}}",
              "{encodings: rope, networks: {name: layerwise_encoder, attention_biases: none, "
              "attention_initial: linear}}",
              "{encodings: {name: none, causal: true}, networks: {name: layerwise_encoder, "
              "attention_biases: none, attention_initial: linear, temperature: 0.01}}"}}};
  return entry;
}

}  // namespace lengthwise::specification
