// Layers with parameters and their initialisation: linear, and the input layer of regression.
#ifndef LENGTHWISE_MODELS_NETWORKS_PARAMETERIZED_LAYERS_H_
#define LENGTHWISE_MODELS_NETWORKS_PARAMETERIZED_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Xavier uniform (Glorot and Bengio 2010). The matrix may be part of one with these sizes.
Initializer Xavier(int64_t fan_in, int64_t fan_out);

// Adds a weight that starts from HaikuLinear.
ParameterId AddWeight(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                      int64_t fan_out);

// Features between the two layers of a feed-forward: d_ff, or 4 * d_model where that is 0.
int64_t FeedForwardFeatures(const catalogue::Parameters& parameters, int64_t d_model);

// The first of the two dropout sites of a block's `layer`-th application. Beyond the most sites
// (models/layers/dropout.h) they repeat.
inline uint32_t DropoutSite(size_t layer) { return static_cast<uint32_t>(1 + 2 * (layer % 511)); }

// x W + b, or x W without `bias`: maps [P, B, n, fan_in] to [P, B, n, fan_out].
struct LinearLayer {
  ParameterId weight = 0;  // [fan_in, fan_out]
  std::optional<ParameterId> bias;

  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& features) const;
};

// Adds `name` and "<name>_bias", both from TorchLinear.
LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out);

// As above, but with the given initialisation of the weight, and a zero bias.
LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out, const Initializer& weight);

// As above, with a weight from HaikuLinear.
LinearLayer AddHaikuLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                          int64_t fan_out);

// Input layer of networks for regression. A token that is a number is embedded with or without its
// position's vector; any other token is a row of a table.
class NumberEmbedding {
 public:
  // Adds "embedding" and, if the vocabulary is not empty, "token_embedding" (N(0, 1), as
  // torch.nn.Embedding) to the layout. `vector_size` is d_P, 0 for networks whose input has no
  // positions. `diagonal` puts each number at its token's index of a vector of zeros as long as the
  // longest sequence.
  NumberEmbedding(const NetworkShape& shape, int64_t vector_size, int64_t d_model,
                  ParameterLayout& layout, bool diagonal = false);

  // [P, B, n, d]. `vectors` [P, n, d_P] are ignored if vector_size is 0.
  at::Tensor operator()(const ParameterSet& parameters, const NetworkInput& input,
                        const at::Tensor& vectors) const;

 private:
  bool reads_vectors_;
  // Columns of a diagonal input; 0 if the input is not diagonal.
  int64_t diagonal_size_;
  LinearLayer linear_;
  std::optional<ParameterId> tokens_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_PARAMETERIZED_LAYERS_H_
