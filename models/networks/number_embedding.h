// How networks for regression read a token: a number, with its position's vector behind it or
// without, or a row of a table for a token that is none.
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
  // `vector_size` is d_P, 0 for networks that read no positions here. Adds "embedding" and, where
  // there are tokens, "token_embedding" (N(0, 1), as torch.nn.Embedding) to the layout.
  // With `diagonal` a number stands at its token's own place of a vector of zeros, as long as the
  // longest sequence, instead of alone.
  NumberEmbedding(const NetworkShape& shape, int64_t vector_size, int64_t d_model,
                  ParameterLayout& layout, bool diagonal = false);

  // [P, B, n, d]; `vectors` [P, n, d_P] are not read where vector_size is 0.
  at::Tensor operator()(const ParameterSet& parameters, const NetworkInput& input,
                        const at::Tensor& vectors) const;

 private:
  bool reads_vectors_;
  // Columns of a diagonal input; 0 where the input is not.
  int64_t diagonal_size_;
  LinearLayer linear_;
  std::optional<ParameterId> tokens_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_NUMBER_EMBEDDING_H_
