#include "models/encodings/causal.h"

#include <limits>
#include <utility>

#include "ATen/ops/arange.h"
#include "ATen/ops/zeros.h"

namespace lengthwise::models {
namespace {

// [n, n]: 0 where row i may see column j, else `hidden`. All rows see the first `prompt` columns.
at::Tensor Mask(int64_t n, int64_t prompt, double hidden, const at::TensorOptions& options) {
  const at::Tensor places = at::arange(n, options.dtype(at::kLong));
  return at::zeros({n, n}, options)
      .masked_fill(
          places.unsqueeze(0).gt(places.unsqueeze(1)).logical_and(places.unsqueeze(0).ge(prompt)),
          hidden);
}

// Mask value for the fused kernels: they subtract maxima, and infinity minus infinity would be NaN.
// e to this power is 0 in float32.
constexpr double kHidden = -1e30;

// Without a prompt, kernels need no mask.
class Causal : public PromptMasked {
 public:
  explicit Causal(std::unique_ptr<Encoding> inner)
      : PromptMasked(*inner, /*heads=*/1, /*prompt=*/0), owned_(std::move(inner)) {}

  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override {
    AttentionTerms terms = inner_.Terms(parameters, block, positions, first, count);
    terms.causal = true;
    return terms;
  }

 private:
  const std::unique_ptr<Encoding> owned_;
};

}  // namespace

at::Tensor PromptMasked::LogitTerm(const ParameterSet& parameters, int64_t block,
                                   const at::Tensor& positions, const at::Tensor& queries,
                                   const at::Tensor& keys) const {
  const int64_t n = queries.size(-2);
  const at::Tensor mask =
      Mask(n, prompt_, -std::numeric_limits<double>::infinity(), queries.options())
          .view({1, 1, 1, n, n});
  const at::Tensor term = inner_.LogitTerm(parameters, block, positions, queries, keys);
  return term.defined() ? term.add(mask) : mask;
}

AttentionTerms PromptMasked::Terms(const ParameterSet& parameters, int64_t block,
                                   const at::Tensor& positions, int64_t first,
                                   int64_t count) const {
  const int64_t n = positions.size(1);
  AttentionTerms terms = inner_.Terms(parameters, block, positions, first, count);
  const at::Tensor mask = Mask(n, prompt_, kHidden, parameters[0].options().requires_grad(false))
                              .narrow(0, first, count)
                              .view({1, 1, count, n});
  terms.additive =
      terms.additive.defined() ? terms.additive.add(mask) : mask.expand({1, heads_, count, n});
  return terms;
}

std::unique_ptr<Encoding> MakeCausal(std::unique_ptr<Encoding> inner) {
  return std::make_unique<Causal>(std::move(inner));
}

}  // namespace lengthwise::models
