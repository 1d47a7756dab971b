// ALiBi, attention with linear biases (Press et al. 2022), bidirectional: every head adds -slope *
// distance to its logits.
//
// distance(i, j) is |p_j - p_i| for positions p. With distances = "offsets" it is p_|j - i|: all
// pairs of tokens equally far apart share one draw, as in the published code of randomized
// positional encodings.
#include <bit>
#include <cmath>

#include "ATen/ops/arange.h"
#include "ATen/ops/tensor.h"
#include "models/encodings/additive.h"
#include "models/encodings/kept_tensors.h"

namespace lengthwise::models {
namespace {

class Alibi : public AdditiveEncoding {
 public:
  Alibi(const catalogue::Parameters& parameters, int64_t heads)
      : offsets_(parameters.String("distances") == "offsets"),
        half_step_(parameters.Bool("half_step")),
        slopes_(at::tensor(AlibiSlopes(heads)).view({1, heads, 1, 1})),
        heads_(heads) {}

 protected:
  at::Tensor Bias(const ParameterSet& parameters, int64_t /*block*/, const at::Tensor& positions,
                  int64_t first, int64_t count) const override {
    const int64_t n = positions.size(1);
    const at::Tensor places = at::arange(n, positions.options().dtype(at::kLong));
    const at::Tensor steps =  // j - i, [count, n]
        places.unsqueeze(0).sub(places.narrow(0, first, count).unsqueeze(1));
    at::Tensor distances =
        offsets_ ? positions.index_select(1, steps.abs().flatten()).view({-1, count, n})
                 : Distances(positions, first, count);
    distances = distances.to(at::kDouble);
    if (half_step_) distances = distances.sub(steps.lt(0).to(at::kDouble).mul(0.5));
    const at::Tensor& any = parameters[0];
    return distances.unsqueeze(1).mul(slopes_.On(distances.device()).neg()).to(any.scalar_type());
  }

  // One double, which counts twice, and its result.
  int64_t NumbersPerPair() const override { return 3 * heads_; }

 private:
  bool offsets_;
  bool half_step_;
  Constant slopes_;  // double [1, H, 1, 1]
  int64_t heads_;
};

}  // namespace

std::vector<double> AlibiSlopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  for (int64_t k = 1; k <= power; ++k) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(k) / static_cast<double>(power)));
  }
  for (int64_t k = 1; static_cast<int64_t>(slopes.size()) < heads; k += 2) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(k) / static_cast<double>(2 * power)));
  }
  return slopes;
}

std::unique_ptr<Encoding> CreateAlibi(const catalogue::Parameters& parameters,
                                      const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<Alibi>(parameters, shape.heads);
}

}  // namespace lengthwise::models
