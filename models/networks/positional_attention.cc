// Positional attention and the standard attention that it is compared with ("Positional Attention:
// Out-of-Distribution Generalization and Expressivity for Neural Algorithmic Reasoning", section 4,
// equations (1) to (3), and its released code), and the intermediate architectures of appendix G.
//
//   h = x W_e + b_e                   x: a token's number, its vocabulary's row, its position
//   per block, with H heads:
//     A_h = softmax(q_h k_h^T / sqrt(d_k))    q, k: linear in the positions' vectors, in h or both
//     o = concat_h(A_h v_h) W_o + b_o         v: linear in h
//     h = W_2 relu(W_1 [h, o] + b_1) + b_2
//   outputs = h W + b
//
// There is no residual addition, no layer norm and no mask. Queries and keys of a head are as wide
// as their source, and RoPE may rotate them (appendix C.3); values are d_model / H wide.
//
// Weights start as PyTorch's modules do, except in attention: queries and keys of all heads start
// as Xavier of one matrix, values and output as Xavier, all with zero biases.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/encodings/encoding.h"
#include "models/layers/dropout.h"
#include "models/networks/catalogue.h"
#include "models/networks/factory.h"
#include "models/networks/parameterized_layers.h"
#include "models/networks/positional_block.h"

namespace lengthwise::models {
namespace {

class PositionalAttention : public Network {
 public:
  explicit PositionalAttention(const NetworkParts& parts)
      : as_vectors_(parts.context.as_vectors),
        // Queries and keys are as wide as their source.
        encoding_(parts.make_encoding({.head_size = parts.context.d_model})),
        embedding_(
            parts.shape,
            as_vectors_ && parts.parameters.Bool("input_positions") ? encoding_->vector_size() : 0,
            parts.context.d_model, parts.layout, parts.parameters.Bool("diagonal_input")) {
    const int64_t vector_size = as_vectors_ ? encoding_->vector_size() : 0;
    for (int64_t b = 0; b < parts.parameters.Int("blocks"); ++b) {
      blocks_.emplace_back(parts.parameters, absl::StrCat("blocks.", b, "."), vector_size,
                           parts.layout);
    }
    output_ = AddLinearLayer(parts.layout, "output", parts.parameters.Int("d_model"),
                             parts.shape.output_columns);
  }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    const at::Tensor first_positions = positions.select(1, 0);
    at::Tensor vectors;
    if (as_vectors_) vectors = encoding_->Vectors(parameters, first_positions);
    at::Tensor h = AddEmbeddingNoise(embedding_(parameters, input, vectors), dropout);
    if (!as_vectors_) {
      const at::Tensor term = encoding_->EmbeddingTerm(parameters, 0, first_positions);
      if (term.defined()) h = h.add(term);
    }
    if (capture != nullptr) capture->depths.push_back(h);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const auto block = static_cast<int64_t>(b);
      h = blocks_[b](parameters,
                     {.encoding = *encoding_,
                      .block = block,
                      .positions = positions.select(1, positions.size(1) == 1 ? 0 : block),
                      .vectors = vectors},
                     h, capture);
      if (capture != nullptr) capture->depths.push_back(h);
    }
    return output_(parameters, h.narrow(2, h.size(2) - output_length, output_length));
  }

 private:
  bool as_vectors_;
  std::unique_ptr<Encoding> encoding_;
  NumberEmbedding embedding_;
  std::vector<PositionalBlock> blocks_;
  LinearLayer output_;
};

}  // namespace

std::unique_ptr<Network> CreatePositionalAttention(const NetworkParts& parts) {
  return std::make_unique<PositionalAttention>(parts);
}

}  // namespace lengthwise::models
