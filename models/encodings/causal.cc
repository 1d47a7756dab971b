#include "models/encodings/causal.h"

#include <limits>
#include <utility>

#include "ATen/ops/arange.h"
#include "ATen/ops/zeros.h"

namespace lengthwise::models {
namespace {

// [n, n]: 0 where row i may see column j, minus infinity elsewhere.
at::Tensor Mask(int64_t n, const at::TensorOptions& options) {
  const at::Tensor places = at::arange(n, options.dtype(at::kLong));
  return at::zeros({n, n}, options)
      .masked_fill(places.unsqueeze(0).gt(places.unsqueeze(1)),
                   -std::numeric_limits<double>::infinity());
}

class Causal : public Encoding {
 public:
  explicit Causal(std::unique_ptr<Encoding> inner) : inner_(std::move(inner)) {}

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    return inner_->EmbeddingTerm(parameters, block, positions);
  }

  void Rotate(const at::Tensor& positions, at::Tensor& queries, at::Tensor& keys) const override {
    inner_->Rotate(positions, queries, keys);
  }

  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const override {
    const int64_t n = queries.size(-2);
    const at::Tensor mask = Mask(n, queries.options()).view({1, 1, 1, n, n});
    const at::Tensor term = inner_->LogitTerm(parameters, block, positions, queries, keys);
    return term.defined() ? term.add(mask) : mask;
  }

  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override {
    AttentionTerms terms = inner_->Terms(parameters, block, positions, first, count);
    terms.causal = true;
    return terms;
  }

  int64_t RowsAtOnce(int64_t members, int64_t tokens) const override {
    return inner_->RowsAtOnce(members, tokens);
  }

  bool SameInEveryBlock() const override { return inner_->SameInEveryBlock(); }

 private:
  std::unique_ptr<Encoding> inner_;
};

}  // namespace

std::unique_ptr<Encoding> MakeCausal(std::unique_ptr<Encoding> inner) {
  return std::make_unique<Causal>(std::move(inner));
}

}  // namespace lengthwise::models
