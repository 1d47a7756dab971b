// Transformer encoder of the length-generalization papers (Vaswani et al. 2017, post-layer-norm,
// bidirectional), as in randomized positional encodings, section 4 and its reference code:
//
//   h = E[token] sqrt(d) + encoding
//   per block:  u = LN(h + MHA(h));  h = LN(u + W2 relu(W1 u + b1) + b2)
//   logits = h W + b  for the last m tokens
//
// The looped encoder applies its blocks, one function f, several times: h = f(h + e) with the
// embeddings e of the first line, from h = 0.
//
// Optional dropout is placed as in the reference code: on what MHA and the feed-forward layers add,
// and on the embeddings if the encoding adds to them. Attention is softmax or geometric
// (models/attention/geometric.h).
//
// Attention's projections have no biases. Linear weights start as N(0, 1/fan_in) truncated at two
// standard deviations, E with standard deviation 0.02. The encoding's parameters come after the
// network's own, so that models with different encodings start from the same network weights.
#include <cmath>
#include <vector>

#include "ATen/ops/cat.h"
#include "absl/strings/str_cat.h"
#include "models/attention/attention.h"
#include "models/attention/geometric.h"
#include "models/encodings/encoding.h"
#include "models/layers/dropout.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layers.h"
#include "models/networks/catalogue.h"
#include "models/networks/factory.h"
#include "models/networks/normed_residual.h"
#include "models/networks/parameterized_layers.h"

namespace lengthwise::models {
namespace {

// Parameters of one block.
struct BlockIds {
  BlockIds(ParameterLayout& layout, const std::string& prefix, int64_t d, int64_t d_ff)
      : query(AddWeight(layout, prefix + "attention.query", d, d)),
        key(AddWeight(layout, prefix + "attention.key", d, d)),
        value(AddWeight(layout, prefix + "attention.value", d, d)),
        output(AddWeight(layout, prefix + "attention.output", d, d)),
        attention_norm(layout, prefix + "attention.norm", d),
        up(AddHaikuLayer(layout, prefix + "feed_forward.up", d, d_ff)),
        down(AddHaikuLayer(layout, prefix + "feed_forward.down", d_ff, d)),
        feed_forward_norm(layout, prefix + "feed_forward.norm", d) {}

  ParameterId query, key, value, output;
  ResidualNorm attention_norm;
  LinearLayer up, down;
  ResidualNorm feed_forward_norm;
};

class Encoder : public Network {
 public:
  explicit Encoder(const NetworkParts& parts)
      : heads_(parts.parameters.Int("heads")),
        d_model_(parts.parameters.Int("d_model")),
        loops_(parts.parameters),
        dropout_rate_(parts.parameters.Double("dropout")),
        dropout_at_evaluation_(parts.parameters.Bool("dropout_at_evaluation")) {
    const int64_t d_ff = FeedForwardFeatures(parts.parameters, d_model_);
    embedding_ = parts.layout.Add(
        "embedding",
        {parts.shape.input_columns + parts.parameters.Int("extra_input_columns"), d_model_},
        {.kind = Initializer::Kind::kTruncatedNormal, .stddev = 0.02});
    for (int64_t b = 0; b < parts.parameters.Int("blocks"); ++b) {
      blocks_.emplace_back(parts.layout, absl::StrCat("blocks.", b, "."), d_model_, d_ff);
    }
    output_ = AddHaikuLayer(parts.layout, "output", d_model_, parts.shape.output_columns);
    if (parts.parameters.String("attention") == "geometric") {
      for (size_t b = 0; b < blocks_.size(); ++b) {
        geometric_.emplace_back(parts.layout, absl::StrCat("blocks.", b, ".attention."), heads_,
                                d_model_);
      }
    }
    encoding_ = parts.make_encoding({});
  }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    // Scales the table instead of the batch: same numbers, less work.
    const double scale = std::sqrt(static_cast<double>(d_model_));
    at::Tensor embedded =
        AddEmbeddingNoise(Embed(input.tokens, parameters[embedding_].mul(scale)), dropout);
    // One tensor for all blocks that share a draw, so that encodings can cache what they derive
    // from it (kept_tensors.h).
    const std::vector<at::Tensor> draws = positions.unbind(1);
    const at::Tensor term = EmbeddingTermOf(*encoding_, parameters, 0, draws[0]);
    if (term.defined()) embedded = Drop(embedded.add(term), 0, dropout);
    if (capture != nullptr) capture->depths.push_back(embedded);
    Normed h = {embedded, Operand(embedded)};
    const int64_t n = h.features.size(2);
    const size_t layers = blocks_.size() * static_cast<size_t>(loops_.Of(n - output_length));
    for (size_t layer = 0; layer < layers; ++layer) {
      const size_t b = layer % blocks_.size();
      if (loops_.inject_input && b == 0 && layer > 0) {
        h.features = h.features.add(embedded);
        h.operand = Operand(h.features);
      }
      const BlockIds& ids = blocks_[b];
      const uint32_t site = DropoutSite(layer);
      const at::Tensor& of_block = draws[draws.size() == 1 ? 0 : b];
      const at::Tensor mixed = Attention(parameters, b, of_block, h, capture);
      h = ids.attention_norm(parameters, h.features, Drop(mixed, site, dropout), capture);
      const at::Tensor forward = FeedForward(h.operand, {.up = parameters[ids.up.weight],
                                                         .up_bias = parameters[*ids.up.bias],
                                                         .down = parameters[ids.down.weight],
                                                         .down_bias = parameters[*ids.down.bias]});
      h = ids.feed_forward_norm(parameters, h.features, Drop(forward, site + 1, dropout), capture);
      if (capture != nullptr) capture->depths.push_back(h.features);
    }
    return output_(parameters, h.features.narrow(2, n - output_length, output_length));
  }

  bool HoldsLogits(const at::Tensor& sample) const override {
    return !geometric_.empty() || !CanFuse(sample);
  }

  bool DrawsInTraining() const override { return dropout_rate_ > 0; }

 private:
  at::Tensor Attention(const ParameterSet& parameters, size_t b, const at::Tensor& positions,
                       const Normed& h, Capture* capture) const {
    const BlockIds& ids = blocks_[b];
    const auto block = static_cast<int64_t>(b);
    AttentionMaps maps;
    // One product instead of three: h is read once, and its gradient is one product, too.
    const at::Tensor qkv = Linear(
        h.operand, at::cat({parameters[ids.query], parameters[ids.key], parameters[ids.value]}, 2));
    const bool keep = capture != nullptr && capture->keep_attention;
    AttentionMaps* const kept = keep ? &maps : nullptr;
    at::Tensor mixed;
    if (geometric_.empty()) {
      mixed = Attend(*encoding_, parameters, block, heads_, positions, qkv, kept);
    } else {
      const std::vector<at::Tensor> parts = qkv.split(d_model_, 3);
      mixed = AttendGeometrically(*encoding_, parameters, geometric_[b], block, heads_, positions,
                                  h.features, parts[0], parts[1], parts[2], kept);
    }
    if (keep) {
      capture->attention_logits.push_back(maps.logits);
      capture->attention_probabilities.push_back(maps.probabilities);
    }
    return Linear(mixed, parameters[ids.output]);
  }

  at::Tensor Drop(const at::Tensor& features, uint32_t site, const DropoutNumbers* numbers) const {
    if (numbers == nullptr || dropout_rate_ == 0) return features;
    if (!numbers->training() && !dropout_at_evaluation_) return features;
    return Dropout(features, dropout_rate_, site, *numbers);
  }

  int64_t heads_;
  int64_t d_model_;
  Loops loops_;
  double dropout_rate_;
  bool dropout_at_evaluation_;
  ParameterId embedding_ = 0;
  std::vector<BlockIds> blocks_;
  // Empty unless attention is geometric.
  std::vector<GeometricIds> geometric_;
  LinearLayer output_;
  std::unique_ptr<Encoding> encoding_;
};

}  // namespace

std::unique_ptr<Network> CreateEncoder(const NetworkParts& parts) {
  return std::make_unique<Encoder>(parts);
}

}  // namespace lengthwise::models
