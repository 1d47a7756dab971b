#include "benchmarks/language_model/decoder.h"

#include "ATen/ops/tensor.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/positions.h"
#include "models/networks/catalogue.h"

namespace lengthwise::benchmarks {

DecoderSize SizeOf(const std::string& name) {
  if (name == "1M") return {.blocks = 2, .heads = 4, .d_model = 192};
  if (name == "2M") return {.blocks = 2, .heads = 4, .d_model = 256};
  if (name == "5M") return {.blocks = 4, .heads = 4, .d_model = 256};
  if (name == "268M") return {.blocks = 16, .heads = 16, .d_model = 1024};
  return {};
}

Decoder::Decoder(const DecoderSize& size, const std::string& encoding, bool randomized,
                 int64_t tokens, catalogue::Parameters network) {
  catalogue::Parameters options;
  network.Set("blocks", size.blocks);
  network.Set("heads", size.heads);
  network.Set("d_model", size.d_model);
  if (randomized) options.Set("randomized", true);
  options = Resolved(models::EncodingEntries(), encoding, options);
  model =
      models::CreateLanguageModel(
          "causal_decoder", Resolved(models::NetworkEntries(), "causal_decoder", network), encoding,
          options,
          {.input_columns = kVocabulary, .output_columns = kVocabulary, .longest_sequence = tokens},
          layout)
          .value();
  arena = std::make_unique<models::ParameterArena>(layout, 1, at::kFloat, at::kCPU);
  arena->Initialize(0, 1);
  const models::PositionPolicy policy(options, size.blocks);
  positions = at::tensor(policy.DrawBatch(1, random::Purpose::kTrainingPositions, 0, tokens))
                  .view({1, policy.draws(), tokens});
}

}  // namespace lengthwise::benchmarks
