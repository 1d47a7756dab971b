#include "models/encodings/causal.h"

#include <limits>
#include <utility>

#include "ATen/ops/arange.h"
#include "ATen/ops/zeros.h"

namespace lengthwise::models {
namespace {

// The fused kernel subtracts logits, which infinities do not survive. Nothing is left of the
// exponential of this.
constexpr double kNever = -1e30;

// [count, n]: 0 where row first + i may see column j, `never` elsewhere.
at::Tensor Mask(int64_t n, int64_t first, int64_t count, double never,
                const at::TensorOptions& options) {
  const at::Tensor columns = at::arange(n, options.dtype(at::kLong));
  const at::Tensor behind = columns.unsqueeze(0).gt(columns.narrow(0, first, count).unsqueeze(1));
  return at::zeros({count, n}, options).masked_fill(behind, never);
}

class Causal : public Encoding {
 public:
  Causal(std::unique_ptr<Encoding> inner, int64_t heads)
      : inner_(std::move(inner)), heads_(heads) {}

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
    const at::Tensor mask =
        Mask(n, 0, n, -std::numeric_limits<double>::infinity(), queries.options())
            .view({1, 1, 1, n, n});
    const at::Tensor term = inner_->LogitTerm(parameters, block, positions, queries, keys);
    return term.defined() ? term.add(mask) : mask;
  }

  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override {
    AttentionTerms terms = inner_->Terms(parameters, block, positions, first, count);
    const at::Tensor mask = Mask(positions.size(1), first, count, kNever, parameters[0].options());
    // Each head has its own in the kernel's layout.
    terms.additive = terms.additive.defined()
                         ? terms.additive.add(mask)
                         : mask.expand({1, heads_, count, positions.size(1)}).contiguous();
    return terms;
  }

  int64_t RowsAtOnce(int64_t members, int64_t tokens) const override {
    return inner_->RowsAtOnce(members, tokens);
  }

 private:
  std::unique_ptr<Encoding> inner_;
  int64_t heads_;
};

}  // namespace

std::unique_ptr<Encoding> MakeCausal(std::unique_ptr<Encoding> inner, int64_t heads) {
  return std::make_unique<Causal>(std::move(inner), heads);
}

}  // namespace lengthwise::models
