#include "models/networks/positional_block.h"

#include <cmath>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "models/layers/layers.h"

namespace lengthwise::models {
namespace {

// Mixes each sequence's values [P, B, n, d] by probabilities [P, B or 1, H, n, n]. Returns [P, B,
// n, d].
at::Tensor Mix(const at::Tensor& probabilities, const at::Tensor& values) {
  const int64_t heads = probabilities.size(2), sequences = values.size(1);
  if (probabilities.size(1) == sequences) {
    return Product(probabilities, SplitHeads(values, heads)).transpose(2, 3).flatten(3);
  }
  // If all sequences share the probabilities, each head is one product: [n, n] by [n, B * size].
  const at::Tensor side_by_side =
      values.unflatten(3, {heads, values.size(3) / heads}).permute({0, 3, 2, 1, 4}).flatten(3);
  return Product(probabilities.squeeze(1), side_by_side)
      .unflatten(3, {sequences, values.size(3) / heads})
      .permute({0, 3, 2, 1, 4})
      .flatten(3);
}

}  // namespace

PositionalBlock::PositionalBlock(const catalogue::Parameters& parameters, const std::string& prefix,
                                 int64_t vector_size, ParameterLayout& layout)
    : by_positions_(parameters.String("attention_by") != "input"),
      by_input_(parameters.String("attention_by") != "positions"),
      turned_by_heads_(parameters.String("rotary") == "heads"),
      heads_(parameters.Int("heads")),
      attention_first_(parameters.Bool("attention_first")) {
  const int64_t d = parameters.Int("d_model");
  const int64_t d_ff = parameters.Int("d_ff") == 0 ? d : parameters.Int("d_ff");
  const int64_t d_k = (by_input_ ? d : 0) + (by_positions_ ? vector_size : 0);
  if (parameters.String("rotary") != "none") {
    catalogue::Parameters by_positions;  // heads too: Rotate passes their indices as positions
    by_positions.Set("turned_by", std::string("tokens"));
    rope_ = CreateRope(by_positions, {.head_size = d_k}, layout);
  }
  scale_ = parameters.Bool("scaled") ? 1 / std::sqrt(static_cast<double>(d_k)) : 1;
  const Initializer queries_and_keys = Xavier(d_k, 2 * heads_ * d_k);
  const std::string attention = prefix + "attention.";
  query_ = AddLinearLayer(layout, attention + "query", d_k, heads_ * d_k, queries_and_keys);
  key_ = AddLinearLayer(layout, attention + "key", d_k, heads_ * d_k, queries_and_keys);
  value_ = AddLinearLayer(layout, attention + "value", d, d, Xavier(d, d));
  output_ = AddLinearLayer(layout, attention + "output", d, d, Xavier(d, d));
  up_ = AddLinearLayer(layout, prefix + "feed_forward.up", 2 * d, d_ff);
  down_ = AddLinearLayer(layout, prefix + "feed_forward.down", d_ff, d);
}

void PositionalBlock::Rotate(const ParameterSet& parameters, const at::Tensor& positions,
                             at::Tensor& queries, at::Tensor& keys) const {
  if (!turned_by_heads_) return rope_->Rotate(parameters, 0, positions, queries, keys);
  // Heads take the place of tokens.
  at::Tensor turned_queries = queries.transpose(2, 3), turned_keys = keys.transpose(2, 3);
  rope_->Rotate(parameters, 0, at::arange(heads_, positions.options()).unsqueeze(0), turned_queries,
                turned_keys);
  queries = turned_queries.transpose(2, 3);
  keys = turned_keys.transpose(2, 3);
}

at::Tensor PositionalBlock::Probabilities(const ParameterSet& parameters,
                                          const BlockPositions& positions, const at::Tensor& h,
                                          Capture* capture) const {
  at::Tensor source = h;
  if (by_positions_) source = positions.vectors.unsqueeze(1);
  if (by_positions_ && by_input_) {
    source = at::cat({h, source.expand({-1, h.size(1), -1, -1})}, 3);
  }
  at::Tensor queries = SplitHeads(query_(parameters, source), heads_);
  at::Tensor keys = SplitHeads(key_(parameters, source), heads_);
  const bool has_vectors = positions.vectors.defined();
  if (!has_vectors) {
    positions.encoding.Rotate(parameters, positions.block, positions.positions, queries, keys);
  }
  if (rope_ != nullptr) Rotate(parameters, positions.positions, queries, keys);
  at::Tensor logits = Product(queries, keys.transpose(3, 4)).mul(scale_);
  if (!has_vectors) {
    const at::Tensor term = positions.encoding.LogitTerm(parameters, positions.block,
                                                         positions.positions, queries, keys);
    if (term.defined()) logits = logits.add(term);
  }
  at::Tensor probabilities = logits.softmax(-1);
  if (capture != nullptr && capture->keep_attention) {
    const std::vector<int64_t> whole = {h.size(0), h.size(1), heads_, h.size(2), h.size(2)};
    capture->attention_logits.push_back(logits.expand(whole));
    capture->attention_probabilities.push_back(probabilities.expand(whole));
  }
  return probabilities;
}

at::Tensor PositionalBlock::operator()(const ParameterSet& parameters,
                                       const BlockPositions& positions, const at::Tensor& h,
                                       Capture* capture) const {
  const at::Tensor mixed =
      Mix(Probabilities(parameters, positions, h, capture), value_(parameters, h));
  const at::Tensor attended = output_(parameters, mixed);
  const at::Tensor both = attention_first_ ? at::cat({attended, h}, 3) : at::cat({h, attended}, 3);
  return down_(parameters, up_(parameters, both).relu());
}

}  // namespace lengthwise::models
