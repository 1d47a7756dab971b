// Input layer of networks for regression. A token that is a number is embedded with or without its
// position's vector; any other token is a row of a table.
#ifndef LENGTHWISE_MODELS_NETWORKS_NUMBER_EMBEDDING_H_
#define LENGTHWISE_MODELS_NETWORKS_NUMBER_EMBEDDING_H_

#include <cstdint>
#include <optional>

#include "ATen/core/Tensor.h"
#include "models/networks/linear_layer.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

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

#endif  // LENGTHWISE_MODELS_NETWORKS_NUMBER_EMBEDDING_H_
