// Graph neural networks over the tokens, although the task defines no graph: all tokens are
// connected, or each is connected to the last one, the scratchpad, as a star ("Positional
// Attention", appendix H; it gives neither sizes nor code, so sizes are those of the paper's other
// networks).
//
//   h = x W_e + b_e                                  x: a token's number and its position's vector
//   per block, "convolution" (Kipf and Welling 2017):  h = relu(D^-1/2 (A + I) D^-1/2 h W + b)
//              "attention" (Velickovic et al. 2018):   h = relu(concat_k(sum_j a_kij h_j W_k) + b),
//     a_kij = softmax over j of leaky_relu(s_k . h_i W_k + t_k . h_j W_k), j: i and its neighbours
//   outputs = h W + b
//
// Without self-connections, I is left out, and i is not among its neighbours.
//
// Weights start as Xavier, biases as zero; embedding and output as in torch.nn.Linear.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/eye.h"
#include "ATen/ops/leaky_relu.h"
#include "ATen/ops/ones.h"
#include "absl/strings/str_cat.h"
#include "models/encodings/encoding.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"
#include "models/networks/factory.h"
#include "models/networks/parameterized_layers.h"

namespace lengthwise::models {
namespace {

// GAT's slope for negative values.
constexpr double kLeakySlope = 0.2;

struct GraphBlock {
  ParameterId weight = 0;  // [d, d]
  ParameterId bias = 0;    // [d]
  // Graph attention's score vectors [H, dh, 1] for the receiving node and its neighbour.
  std::optional<ParameterId> source, target;
};

class GraphNetwork : public Network {
 public:
  explicit GraphNetwork(const NetworkParts& parts)
      : is_star_(parts.parameters.String("graph") == "star"),
        with_self_(parts.parameters.Bool("self_connections")),
        heads_(parts.parameters.Int("heads")),
        encoding_(parts.make_encoding({})),
        embedding_(parts.shape, encoding_->vector_size(), parts.parameters.Int("d_model"),
                   parts.layout) {
    const int64_t d = parts.parameters.Int("d_model"), head_size = d / heads_;
    for (int64_t b = 0; b < parts.parameters.Int("blocks"); ++b) {
      const std::string prefix = absl::StrCat("blocks.", b, ".");
      GraphBlock block{
          .weight = parts.layout.Add(prefix + "weight", {d, d}, Xavier(d, d)),
          .bias = parts.layout.Add(prefix + "bias", {d}, {.kind = Initializer::Kind::kZeros})};
      if (parts.parameters.String("architecture") == "attention") {
        const std::vector<int64_t> scores = {heads_, head_size, 1};
        block.source = parts.layout.Add(prefix + "source", scores, Xavier(head_size, 1));
        block.target = parts.layout.Add(prefix + "target", scores, Xavier(head_size, 1));
      }
      blocks_.push_back(block);
    }
    output_ = AddLinearLayer(parts.layout, "output", d, parts.shape.output_columns);
  }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    at::Tensor h = AddEmbeddingNoise(
        embedding_(parameters, input, encoding_->Vectors(parameters, positions.select(1, 0))),
        dropout);
    const int64_t n = h.size(2);
    if (capture != nullptr) capture->depths.push_back(h);
    for (const GraphBlock& block : blocks_) {
      const at::Tensor received = block.source.has_value()
                                      ? Attend(parameters, block, h, capture)
                                      : Convolve(parameters, block, h, n, capture);
      h = received.add(parameters[block.bias].unsqueeze(1).unsqueeze(1)).relu_();
      if (capture != nullptr) capture->depths.push_back(AllTokens(h, n));
    }
    const int64_t rows = std::min(h.size(2), output_length);
    return AllTokens(output_(parameters, h.narrow(2, h.size(2) - rows, rows)), output_length);
  }

 private:
  // [P, B, n, d] from as many rows, from one that all tokens share, or from two: that of all tokens
  // but the last, and the last one's.
  static at::Tensor AllTokens(const at::Tensor& h, int64_t n) {
    if (h.size(2) == n) return h;
    const auto repeated = [&](int64_t count) {
      return h.narrow(2, 0, 1).expand({h.size(0), h.size(1), count, h.size(3)});
    };
    if (h.size(2) == 1) return repeated(n);
    return at::cat({repeated(n - 1), h.narrow(2, 1, 1)}, 2);
  }

  // A + I, or A, as an [n, n] tensor of 0 and 1. A token that is alone keeps its connection.
  at::Tensor Neighbours(const at::Tensor& h, int64_t n) const {
    at::Tensor neighbours = is_star_ ? at::eye(n, h.options()) : at::ones({n, n}, h.options());
    neighbours.select(0, n - 1).fill_(1);
    neighbours.select(1, n - 1).fill_(1);
    if (!with_self_ && n > 1) neighbours.fill_diagonal_(0);
    return neighbours;
  }

  // D^-1/2 (A + I) D^-1/2 h W for `n` tokens, with the rows of `h` and of the result as in
  // AllTokens: in a complete graph this is the mean over the tokens, the same for each of them; in
  // a star without self-connections all tokens but the last get the same. Further blocks then
  // compute one or two rows instead of n.
  at::Tensor Convolve(const ParameterSet& parameters, const GraphBlock& block, const at::Tensor& h,
                      int64_t n, Capture* capture) const {
    if (capture != nullptr && capture->keep_attention) {
      const at::Tensor neighbours = Neighbours(h, n);
      const at::Tensor scale = neighbours.sum(1).rsqrt();
      KeepWeights(neighbours.mul(scale.unsqueeze(0)).mul(scale.unsqueeze(1)), h, capture);
    }
    if (!is_star_ && with_self_) {
      return Linear(h.size(2) == 1 ? h : h.mean(2, true), parameters[block.weight]);
    }
    const at::Tensor messages = Linear(h, parameters[block.weight]);
    if (n == 1) return messages;
    if (!is_star_) {
      return messages.sum(2, true).sub(messages).mul(1 / static_cast<double>(n - 1));
    }
    // Not two calls of narrow: the gradient of each would be as large as `messages`.
    const int64_t rows = messages.size(2);
    const std::vector<at::Tensor> parts = messages.split_with_sizes({rows - 1, 1}, 2);
    const at::Tensor& tokens = parts[0];
    const at::Tensor& last = parts[1];
    if (!with_self_) {
      const double alike = static_cast<double>(n - 1) / static_cast<double>(rows - 1);
      const double scale = 1 / std::sqrt(static_cast<double>(n - 1));
      return at::cat({last.mul(scale), tokens.sum(2, true).mul(alike * scale)}, 2);
    }
    // Degrees, with the connection to itself: 2 of a token, n of the last one.
    const double scale = 1 / std::sqrt(2.0 * static_cast<double>(n));
    return at::cat({tokens.mul(0.5).add_(last, scale),
                    tokens.sum(2, true).mul(scale).add(last, 1 / static_cast<double>(n))},
                   2);
  }

  // concat_k(sum_j a_kij h_j W_k) of graph attention.
  at::Tensor Attend(const ParameterSet& parameters, const GraphBlock& block, const at::Tensor& h,
                    Capture* capture) const {
    // [P, B, H, n, dh]
    const at::Tensor messages = SplitHeads(Linear(h, parameters[block.weight]), heads_);
    const at::Tensor asking = Product(messages, parameters[*block.source].unsqueeze(1));
    const at::Tensor asked = Product(messages, parameters[*block.target].unsqueeze(1));
    const at::Tensor weights =
        at::leaky_relu(asking.add(asked.transpose(3, 4)), kLeakySlope)
            .masked_fill(Neighbours(h, h.size(2)).eq(0), -std::numeric_limits<double>::infinity())
            .softmax(-1);
    if (capture != nullptr && capture->keep_attention) KeepWeights(weights, h, capture);
    return Product(weights, messages).transpose(2, 3).flatten(3);
  }

  // Keeps weights [n, n] or [P, B, H, n, n] as attention.
  void KeepWeights(const at::Tensor& weights, const at::Tensor& h, Capture* capture) const {
    capture->attention_probabilities.push_back(
        weights.expand({h.size(0), h.size(1), heads_, weights.size(-2), weights.size(-1)}));
  }

  bool is_star_;
  bool with_self_;
  int64_t heads_;
  std::unique_ptr<Encoding> encoding_;
  NumberEmbedding embedding_;
  std::vector<GraphBlock> blocks_;
  LinearLayer output_;
};

}  // namespace

std::unique_ptr<Network> CreateGraphNetwork(const NetworkParts& parts) {
  return std::make_unique<GraphNetwork>(parts);
}

}  // namespace lengthwise::models
