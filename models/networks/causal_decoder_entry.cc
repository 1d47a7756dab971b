#include <string>

#include "models/networks/causal_decoder.h"
#include "models/networks/transformer_entry.h"

namespace lengthwise::models {
namespace {

EncodingContext Context(const catalogue::Parameters& parameters) {
  EncodingContext context = TransformerContext(parameters);
  context.open_ended = true;
  return context;
}

}  // namespace

const NetworkEntry& CausalDecoderEntry() {
  static const NetworkEntry& entry = *new NetworkEntry{
      {.name = "causal_decoder",
       .title = "Transformer decoder",
       .documentation =
           "A causal Transformer with RMS norms before and after its layers, gated feed-forward "
           "layers and no biases, which continues text (decimal addition, Table E.1). "
           "The default is the paper's model of 25M parameters; 2M, 5M and 268M are blocks 2, 4 "
           "and 16 with d_model 256, 256 and 1024 and heads 4, 4 and 16.",
       .parameters =
           {{.name = "blocks",
             .default_value = int64_t{6},
             .documentation = "Blocks of attention and feed-forward layers.",
             .minimum = 1,
             .maximum = 256},
            HeadsParameter(8),
            WidthParameter(512),
            {.name = "d_ff",
             .default_value = int64_t{0},
             .documentation = "Features of gate and value; 0 means 4 * d_model.",
             .minimum = 0,
             .maximum = 32768},
            {.name = "norm",
             .default_value = std::string("sandwich"),
             .documentation =
                 "Where norms stand, of which the paper says \"both PreNorm and PostNorm layers, "
                 "following Primer\". \"sandwich\": x + N(f(N(x))). \"residual_post\": N(x + "
                 "f(N(x))). \"primer\": x + f(N(x)) for attention, x + N(f(x)) for the "
                 "feed-forward "
                 "layer, as Primer has them.",
             .allowed = {"sandwich", "residual_post", "primer"}},
            {.name = "gelu",
             .default_value = std::string("exact"),
             .documentation = "The gate's function, \"exact\" or its approximation with \"tanh\".",
             .allowed = {"exact", "tanh"}},
            {.name = "tied",
             .default_value = false,
             .documentation = "Reads logits out with the embedding's own vectors."},
            {.name = "dropout",
             .default_value = 0.0,
             .documentation = "Probability of dropping, in training, a feature of the embeddings "
                              "and of what attention and feed-forward layers add.",
             .minimum = 0,
             .maximum = 0.95},
            {.name = "prompt_attention",
             .default_value = std::string("causal"),
             .documentation =
                 "What the tokens of a prompt see: those before them (\"causal\"), or all of the "
                 "prompt (\"bidirectional\"), as in a prefix language model (section E.2), whose "
                 "loss counts answers alone: training.packing.answers_only.",
             .allowed = {"causal", "bidirectional"}},
            {.name = "recompute_activations",
             .default_value = false,
             .documentation =
                 "Keeps for the backward pass what enters each block alone and computes the rest "
                 "again, for large models and batches: a third more work, a fraction of the "
                 "memory, the same gradients."}}},
      /*task_kinds=*/{tasks::TaskKind::kText},
      CheckHeads,
      Context};
  return entry;
}

}  // namespace lengthwise::models
