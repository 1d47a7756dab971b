#include "worker/evaluation/attention_map.h"

#include "ATen/ATen.h"

namespace lengthwise::worker::evaluation {
namespace {

// A map's token for a position at which the model saw a number.
constexpr int32_t kNumberToken = -1;

}  // namespace

v1::AttentionMap MakeAttentionMap(const data::GivenSequence& sequence, const at::Tensor& positions,
                                  const models::Capture& capture) {
  v1::AttentionMap map;
  map.set_length(static_cast<int32_t>(sequence.length));
  for (const int64_t token : sequence.tokens) map.add_tokens(static_cast<int32_t>(token));
  for (const double number : sequence.numbers) map.add_numbers(number);
  if (sequence.tokens.empty()) map.mutable_tokens()->Resize(map.numbers_size(), kNumberToken);
  const at::Tensor host_positions = positions.cpu();
  for (int i = 0; i < map.tokens_size(); ++i) {
    map.add_positions(host_positions.const_data_ptr<int64_t>()[i]);
  }
  map.set_layers(static_cast<int32_t>(capture.attention_probabilities.size()));
  for (const at::Tensor& layer : capture.attention_probabilities) {
    // [P, B, H, n, n] -> [H, n, n] of the first member and sequence
    const at::Tensor probabilities =
        layer.select(0, 0).select(0, 0).to(at::kCPU, at::kFloat).contiguous();
    map.set_heads(static_cast<int32_t>(probabilities.size(0)));
    map.mutable_probabilities()->append(static_cast<const char*>(probabilities.const_data_ptr()),
                                        static_cast<size_t>(probabilities.numel()) * sizeof(float));
  }
  return map;
}

}  // namespace lengthwise::worker::evaluation
