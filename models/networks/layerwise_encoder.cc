// Transformer encoder of relational reasoning on Latin squares (section 2.2 and its released code).
// Every block adds the positional encoding again, and each block has its own.
//
//   h = x W_e + b_e                                  (x one-hot; a blank cell is all zeros)
//   per block:  u = h + encoding;  a = LN(MHA(u) + u);  h = LN(gelu(W2 gelu(W1 a + b1) + b2) + a)
//   logits = h W + b  for the last m tokens
//
// Parameters select what the code does differently from the paper: the outer gelu, attention
// without biases or without an output projection, a temperature, where attention starts.
//
// Weights start as PyTorch's modules do: weights and biases of linear layers uniform up to 1 /
// sqrt(fan_in); queries, keys and values as Xavier of one matrix, with zero biases, as in its
// multi-head attention, or as linear layers, as in modules of one's own. The encoding's
// parameters come after the network's own, so that models with different encodings start from the
// same network weights.
#include <optional>
#include <string>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/zeros_like.h"
#include "absl/strings/str_cat.h"
#include "models/attention/attention.h"
#include "models/encodings/encoding.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"
#include "models/networks/factory.h"
#include "models/networks/normed_residual.h"
#include "models/networks/parameterized_layers.h"

namespace lengthwise::models {
namespace {

struct LayerwiseBlock {
  LayerwiseBlock(ParameterLayout& layout, const std::string& prefix,
                 const catalogue::Parameters& parameters, int64_t d, int64_t d_ff)
      : inputs(AddInputs(layout, prefix, parameters, d)),
        output(AddOutput(layout, prefix, parameters, d)),
        attention_norm(layout, prefix + "attention.norm", d),
        up(AddLinearLayer(layout, prefix + "feed_forward.up", d, d_ff)),
        down(AddLinearLayer(layout, prefix + "feed_forward.down", d_ff, d)),
        feed_forward_norm(layout, prefix + "feed_forward.norm", d) {}

  // Queries, keys and values as one matrix [d, 3 d], with Xavier for the whole matrix.
  static LinearLayer AddInputs(ParameterLayout& layout, const std::string& prefix,
                               const catalogue::Parameters& parameters, int64_t d) {
    const bool linear = parameters.String("attention_initial") == "linear";
    const Initializer uniform = TorchLinear(d), zeros = {.kind = Initializer::Kind::kZeros};
    LinearLayer ids{.weight = layout.Add(prefix + "attention.inputs", {d, 3 * d},
                                         linear ? uniform : Xavier(d, 3 * d))};
    if (parameters.String("attention_biases") != "none") {
      ids.bias = layout.Add(prefix + "attention.inputs_bias", {3 * d}, linear ? uniform : zeros);
    }
    return ids;
  }

  static std::optional<LinearLayer> AddOutput(ParameterLayout& layout, const std::string& prefix,
                                              const catalogue::Parameters& parameters, int64_t d) {
    if (!parameters.Bool("output_projection")) return std::nullopt;
    LinearLayer ids{.weight = layout.Add(prefix + "attention.output", {d, d}, TorchLinear(d))};
    if (parameters.String("attention_biases") == "all") {
      ids.bias =
          layout.Add(prefix + "attention.output_bias", {d}, {.kind = Initializer::Kind::kZeros});
    }
    return ids;
  }

  LinearLayer inputs;
  std::optional<LinearLayer> output;
  ResidualNorm attention_norm;
  LinearLayer up, down;
  ResidualNorm feed_forward_norm;
};

class LayerwiseEncoder : public Network {
 public:
  explicit LayerwiseEncoder(const NetworkParts& parts)
      : heads_(parts.parameters.Int("heads")),
        d_model_(parts.parameters.Int("d_model")),
        temperature_(parts.parameters.Double("temperature")),
        outer_gelu_(parts.parameters.Bool("outer_gelu")),
        encoding_dropout_(parts.parameters.Double("encoding_dropout")),
        has_blank_(parts.shape.has_blank) {
    const int64_t d_ff = FeedForwardFeatures(parts.parameters, d_model_);
    const int64_t features = parts.shape.input_columns - (has_blank_ ? 1 : 0);
    embedding_ = AddLinearLayer(parts.layout, "embedding", features, d_model_);
    for (int64_t b = 0; b < parts.parameters.Int("blocks"); ++b) {
      blocks_.emplace_back(parts.layout, absl::StrCat("blocks.", b, "."), parts.parameters,
                           d_model_, d_ff);
    }
    output_ = AddLinearLayer(parts.layout, "output", d_model_, parts.shape.output_columns);
    encoding_ = parts.make_encoding({.in_every_block = true});
  }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    at::Tensor h = AddEmbeddingNoise(Embed(input.tokens, EmbeddingTable(parameters)), dropout);
    if (capture != nullptr) capture->depths.push_back(h);
    // One tensor for all blocks that share a draw, so that encodings can cache what they derive
    // from it (kept_tensors.h).
    const std::vector<at::Tensor> draws = positions.unbind(1);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const LayerwiseBlock& block = blocks_[b];
      const auto index = static_cast<int64_t>(b);
      const at::Tensor& block_positions = draws[draws.size() == 1 ? 0 : b];
      const at::Tensor term = EmbeddingTermOf(*encoding_, parameters, index, block_positions);
      if (term.defined()) h = AddEncoding(h, term, static_cast<uint32_t>(b), dropout);
      h = block
              .attention_norm(parameters, h,
                              Attention(parameters, block, index, block_positions, h, capture),
                              capture)
              .features;
      at::Tensor forward = block.down(parameters, at::gelu(block.up(parameters, h)));
      if (outer_gelu_) forward = at::gelu(forward);
      h = block.feed_forward_norm(parameters, h, forward, capture).features;
      if (capture != nullptr) capture->depths.push_back(h);
    }
    return output_(parameters, h.narrow(2, h.size(2) - output_length, output_length));
  }

  bool HoldsLogits(const at::Tensor& sample) const override { return !CanFuse(sample); }

  bool DrawsInTraining() const override { return encoding_dropout_ > 0; }

 private:
  at::Tensor AddEncoding(const at::Tensor& h, const at::Tensor& term, uint32_t block,
                         const DropoutNumbers* numbers) const {
    const at::Tensor sum = h.add(term);
    if (encoding_dropout_ == 0 || numbers == nullptr) return sum;
    return Dropout(sum, encoding_dropout_, /*site=*/block, *numbers);
  }

  // The embedding of each token as a table [P, W, d]; a blank token has only the bias.
  at::Tensor EmbeddingTable(const ParameterSet& parameters) const {
    at::Tensor rows = parameters[embedding_.weight];
    if (has_blank_) rows = at::cat({at::zeros_like(rows.narrow(1, 0, 1)), rows}, 1);
    return rows.add(parameters[*embedding_.bias].unsqueeze(1));
  }

  at::Tensor Attention(const ParameterSet& parameters, const LayerwiseBlock& block, int64_t index,
                       const at::Tensor& positions, const at::Tensor& h, Capture* capture) const {
    const bool keep = capture != nullptr && capture->keep_attention;
    AttentionMaps maps;
    at::Tensor qkv = block.inputs(parameters, h);
    if (temperature_ != 1) {
      qkv = at::cat(
          {qkv.narrow(3, 0, d_model_).div(temperature_), qkv.narrow(3, d_model_, 2 * d_model_)}, 3);
    }
    const at::Tensor mixed =
        Attend(*encoding_, parameters, index, heads_, positions, qkv, keep ? &maps : nullptr);
    if (keep) {
      capture->attention_logits.push_back(maps.logits);
      capture->attention_probabilities.push_back(maps.probabilities);
    }
    return block.output.has_value() ? (*block.output)(parameters, mixed) : mixed;
  }

  int64_t heads_;
  int64_t d_model_;
  double temperature_;
  bool outer_gelu_;
  double encoding_dropout_;
  bool has_blank_;
  LinearLayer embedding_;
  std::vector<LayerwiseBlock> blocks_;
  LinearLayer output_;
  std::unique_ptr<Encoding> encoding_;
};

}  // namespace

std::unique_ptr<Network> CreateLayerwiseEncoder(const NetworkParts& parts) {
  return std::make_unique<LayerwiseEncoder>(parts);
}

}  // namespace lengthwise::models
