// FIRE, functional interpolation for relative positions (Li et al. 2024). A small network maps the
// distance from query to key, as a fraction of the largest possible distance, to every head's term:
//
//   b_h(i, j) = f_h( psi(|p_i - p_j|) / (psi(max(|L|, p_i)) + 1e-6) ),  psi(x) = log(|c x| + 1)
//
// f is Linear(1, width), ReLU, Linear(width, H). All blocks share f, the learned factor c and the
// learned threshold L = multiplier * threshold. In networks that are not causal, max(p_i, p_j)
// replaces p_i, because the key may come after the query. The fraction is then symmetric and at
// most 1, and unchanged for keys before the query.
#include "ATen/ops/log1p.h"
#include "ATen/ops/maximum.h"
#include "ATen/ops/relu.h"
#include "models/encodings/additive.h"
#include "models/layers/products.h"

namespace lengthwise::models {
namespace {

constexpr double kEpsilon = 1e-6;

class Fire : public AdditiveEncoding {
 public:
  Fire(const catalogue::Parameters& parameters, const EncodingShape& shape, ParameterLayout& layout)
      : threshold_(parameters.Double("threshold")),
        width_(parameters.Int("width")),
        causal_(shape.causal),
        c_(layout.Add("encoding.c", {1},
                      {.kind = Initializer::Kind::kConstant, .value = parameters.Double("c")})),
        multiplier_(
            layout.Add("encoding.threshold_multiplier", {1}, {.kind = Initializer::Kind::kOnes})),
        up_(layout.Add("encoding.up", {1, width_}, TorchLinear(1))),
        up_bias_(layout.Add("encoding.up_bias", {width_}, TorchLinear(1))),
        down_(layout.Add("encoding.down", {width_, shape.heads}, TorchLinear(width_))),
        down_bias_(layout.Add("encoding.down_bias", {shape.heads}, TorchLinear(width_))) {}

 protected:
  at::Tensor Bias(const ParameterSet& parameters, int64_t /*block*/, const at::Tensor& positions,
                  int64_t first, int64_t count) const override {
    const at::ScalarType type = parameters[c_].scalar_type();
    const at::Tensor c = parameters[c_].unsqueeze(2);  // [P, 1, 1]
    const auto psi = [&](const at::Tensor& x) { return at::log1p(x.mul(c).abs()); };
    const at::Tensor threshold = parameters[multiplier_].unsqueeze(2).mul(threshold_).abs();
    at::Tensor farthest = positions.narrow(1, first, count).unsqueeze(2);  // [P, count, 1]
    if (!causal_) farthest = at::maximum(farthest, positions.unsqueeze(1));
    const at::Tensor share = psi(Distances(positions, first, count).to(type))
                                 .div(psi(at::maximum(farthest.to(type), threshold)).add(kEpsilon));
    // [P, count, n, width]; then [P, count * n, H]
    const at::Tensor hidden = at::relu(share.unsqueeze(3)
                                           .mul(parameters[up_].unsqueeze(1))
                                           .add(parameters[up_bias_].unsqueeze(1).unsqueeze(1)));
    return MatrixProduct(hidden.flatten(1, 2), parameters[down_])
        .add(parameters[down_bias_].unsqueeze(1))
        .transpose(1, 2)
        .unflatten(2, {count, positions.size(1)});
  }

  int64_t NumbersPerPair() const override { return 2 * width_; }

 private:
  double threshold_;
  int64_t width_;
  bool causal_;
  ParameterId c_, multiplier_, up_, up_bias_, down_, down_bias_;
};

}  // namespace

std::unique_ptr<Encoding> CreateFire(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<Fire>(parameters, shape, layout);
}

}  // namespace lengthwise::models
