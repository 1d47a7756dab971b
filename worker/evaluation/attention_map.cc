#include "worker/evaluation/attention_map.h"

#include "ATen/ATen.h"

namespace lengthwise::worker::evaluation {

v1::AttentionMap MakeAttentionMap(int64_t length, const std::vector<int64_t>& tokens,
                                  const at::Tensor& positions, const models::Capture& capture) {
  v1::AttentionMap map;
  map.set_length(static_cast<int32_t>(length));
  const at::Tensor host_positions = positions.cpu();
  for (size_t i = 0; i < tokens.size(); ++i) {
    map.add_tokens(static_cast<int32_t>(tokens[i]));
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
