// Relative position representations of Shaw et al. 2018, for keys alone (relational reasoning on
// Latin squares, appendix 5.1):
//
//   logits[i, j] = q_i . (k_j + a_clip(j - i)) / sqrt(dh)
//
// Each block has a table a of 2k + 1 learned vectors for the distances -k .. k, shared by its
// heads. clip limits distances to -k .. k.
#include <cmath>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"
#include "models/encodings/relative_logits.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"

namespace lengthwise::models {
namespace {

class Shaw : public Encoding {
 public:
  Shaw(const catalogue::Parameters& parameters, const EncodingShape& shape, ParameterLayout& layout)
      : max_distance_(parameters.Int("max_distance")),
        heads_(shape.heads),
        head_size_(shape.HeadSize()) {
    for (int64_t b = 0; b < shape.blocks; ++b) {
      tables_.push_back(layout.Add(
          absl::StrCat("blocks.", b, ".encoding.table"), {2 * max_distance_ + 1, head_size_},
          {.kind = Initializer::Kind::kNormal, .stddev = parameters.Double("stddev")}));
    }
  }

  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const override {
    const int64_t members = queries.size(0), sequences = queries.size(1), n = queries.size(3);
    const double scale = 1 / std::sqrt(static_cast<double>(head_size_));
    // One product with all 2n - 1 distances; then row i is shifted by i places.
    const at::Tensor by_distance = MatrixProduct(
        Widened(queries).mul(scale).reshape({members, sequences * heads_ * n, head_size_}),
        ByDistance(parameters, block, n).transpose(1, 2));
    return ShiftedRows(by_distance.view({members * sequences * heads_, n, 2 * n - 1}))
        .view({members, sequences, heads_, n, n});
  }

  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override {
    const int64_t members = positions.size(0), n = positions.size(1);
    const at::Tensor relative = ByDistance(parameters, block, n)
                                    .transpose(1, 2)
                                    .unsqueeze(1)
                                    .expand({members, heads_, head_size_, 2 * n - 1});
    const at::Tensor none = at::zeros({members, heads_, head_size_}, relative.options());
    return {.relative = relative, .toeplitz = true, .content_bias = none, .position_bias = none};
  }

 private:
  // Vectors of the distances -(n - 1) .. n - 1, [P, 2n - 1, dh].
  at::Tensor ByDistance(const ParameterSet& parameters, int64_t block, int64_t n) const {
    const at::Tensor& table = parameters[tables_[static_cast<size_t>(block)]];
    const at::Tensor distances =
        at::arange(1 - n, n, table.options().dtype(at::kLong)).clamp(-max_distance_, max_distance_);
    return table.index_select(1, distances.add(max_distance_));
  }

  int64_t max_distance_;
  int64_t heads_;
  int64_t head_size_;
  std::vector<ParameterId> tables_;
};

}  // namespace

std::unique_ptr<Encoding> CreateShaw(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  auto shaw = std::make_unique<Shaw>(parameters, shape, layout);
  if (!parameters.Bool("causal")) return shaw;
  return MakeCausal(std::move(shaw));
}

}  // namespace lengthwise::models
