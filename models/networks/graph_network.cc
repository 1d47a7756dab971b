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
// Weights start as Xavier, biases as zero; embedding and output as in torch.nn.Linear.
#include <limits>
#include <optional>
#include <string>
#include <utility>
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
#include "platform/status_macros.h"

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
  GraphNetwork(const catalogue::Parameters& parameters, const NetworkShape& shape,
               std::unique_ptr<Encoding> encoding, ParameterLayout& layout)
      : is_star_(parameters.String("graph") == "star"),
        heads_(parameters.Int("heads")),
        encoding_(std::move(encoding)),
        embedding_(shape, encoding_->vector_size(), parameters.Int("d_model"), layout) {
    const int64_t d = parameters.Int("d_model"), head_size = d / heads_;
    for (int64_t b = 0; b < parameters.Int("blocks"); ++b) {
      const std::string prefix = absl::StrCat("blocks.", b, ".");
      GraphBlock block{
          .weight = layout.Add(prefix + "weight", {d, d}, Xavier(d, d)),
          .bias = layout.Add(prefix + "bias", {d}, {.kind = Initializer::Kind::kZeros})};
      if (parameters.String("architecture") == "attention") {
        const std::vector<int64_t> scores = {heads_, head_size, 1};
        block.source = layout.Add(prefix + "source", scores, Xavier(head_size, 1));
        block.target = layout.Add(prefix + "target", scores, Xavier(head_size, 1));
      }
      blocks_.push_back(block);
    }
    output_ = AddLinearLayer(layout, "output", d, shape.output_columns);
  }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    at::Tensor h = AddEmbeddingNoise(
        embedding_(parameters, input, encoding_->Vectors(parameters, positions.select(1, 0))),
        dropout);
    const at::Tensor neighbours = Neighbours(h);
    if (capture != nullptr) capture->depths.push_back(h);
    for (const GraphBlock& block : blocks_) {
      // [P, B, H, n, dh]
      const at::Tensor messages = Linear(h, parameters[block.weight])
                                      .unflatten(3, {heads_, h.size(3) / heads_})
                                      .transpose(2, 3);
      const at::Tensor weights = block.source.has_value()
                                     ? Attention(parameters, block, messages, neighbours)
                                     : Convolution(neighbours);
      if (capture != nullptr && capture->keep_attention) {
        const std::vector<int64_t> whole = {h.size(0), h.size(1), heads_, h.size(2), h.size(2)};
        capture->attention_probabilities.push_back(weights.expand(whole));
      }
      h = Product(weights, messages)
              .transpose(2, 3)
              .flatten(3)
              .add(parameters[block.bias].unsqueeze(1).unsqueeze(1))
              .relu();
      if (capture != nullptr) capture->depths.push_back(h);
    }
    return output_(parameters, h.narrow(2, h.size(2) - output_length, output_length));
  }

 private:
  // A + I as an [n, n] tensor of 0 and 1.
  at::Tensor Neighbours(const at::Tensor& h) const {
    const int64_t n = h.size(2);
    if (!is_star_) return at::ones({n, n}, h.options());
    at::Tensor neighbours = at::eye(n, h.options());
    neighbours.select(0, n - 1).fill_(1);
    neighbours.select(1, n - 1).fill_(1);
    return neighbours;
  }

  // D^-1/2 (A + I) D^-1/2
  static at::Tensor Convolution(const at::Tensor& neighbours) {
    const at::Tensor scale = neighbours.sum(1).rsqrt();
    return neighbours.mul(scale.unsqueeze(0)).mul(scale.unsqueeze(1));
  }

  // [P, B, H, n, n]
  static at::Tensor Attention(const ParameterSet& parameters, const GraphBlock& block,
                              const at::Tensor& messages, const at::Tensor& neighbours) {
    const at::Tensor asking = Product(messages, parameters[*block.source].unsqueeze(1));
    const at::Tensor asked = Product(messages, parameters[*block.target].unsqueeze(1));
    return at::leaky_relu(asking.add(asked.transpose(3, 4)), kLeakySlope)
        .masked_fill(neighbours.eq(0), -std::numeric_limits<double>::infinity())
        .softmax(-1);
  }

  bool is_star_;
  int64_t heads_;
  std::unique_ptr<Encoding> encoding_;
  NumberEmbedding embedding_;
  std::vector<GraphBlock> blocks_;
  LinearLayer output_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> CreateGraphNetwork(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
    ParameterLayout& layout) {
  ASSIGN_OR_RETURN(std::unique_ptr<Encoding> encoding,
                   CreateEncoding(encoding_name, encoding_parameters,
                                  {.blocks = parameters.Int("blocks"),
                                   .heads = parameters.Int("heads"),
                                   .d_model = parameters.Int("d_model"),
                                   .longest_sequence = shape.longest_sequence},
                                  layout));
  return std::make_unique<GraphNetwork>(parameters, shape, std::move(encoding), layout);
}

}  // namespace lengthwise::models
