// KERPLE's logarithmic kernel (Chi et al. 2022, section 4): head h adds
//
//   -r1_h log(1 + r2_h |p_i - p_j|)
//
// to its logits. r1 and r2 are at least 0.01 and shared by all blocks.
#include "ATen/ops/log1p.h"
#include "models/encodings/additive.h"

namespace lengthwise::models {
namespace {

constexpr double kSmallest = 0.01;

// Initialised from U(0, limit). Optimizers keep it at kSmallest or above; Bias clamps smaller
// initial values.
ParameterId AddFactor(ParameterLayout& layout, const char* name, int64_t heads, double limit) {
  const ParameterId id =
      layout.Add(name, {heads}, {.kind = Initializer::Kind::kUniformAboveZero, .value = limit});
  layout.SetMinimum(id, kSmallest);
  return id;
}

class KerpleLog : public AdditiveEncoding {
 public:
  KerpleLog(const EncodingShape& shape, ParameterLayout& layout)
      : heads_(shape.heads),
        r1_(AddFactor(layout, "encoding.r1", shape.heads, 2)),
        r2_(AddFactor(layout, "encoding.r2", shape.heads, 1)) {}

 protected:
  at::Tensor Bias(const ParameterSet& parameters, int64_t /*block*/, const at::Tensor& positions,
                  int64_t first, int64_t count) const override {
    const auto factor = [&](ParameterId id) {  // [P, H, 1, 1]
      return parameters[id].clamp_min(kSmallest).unsqueeze(2).unsqueeze(3);
    };
    const at::Tensor distances =
        Distances(positions, first, count).to(parameters[r1_].scalar_type()).unsqueeze(1);
    return at::log1p(distances.mul(factor(r2_))).mul(factor(r1_).neg());
  }

  int64_t NumbersPerPair() const override { return 2 * heads_; }

 private:
  int64_t heads_;
  ParameterId r1_, r2_;
};

}  // namespace

std::unique_ptr<Encoding> CreateKerpleLog(const catalogue::Parameters& parameters,
                                          const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<KerpleLog>(shape, layout);
}

}  // namespace lengthwise::models
