#include "models/networks/normed_residual.h"

namespace lengthwise::models {
namespace {

constexpr Initializer kOnes = {.kind = Initializer::Kind::kOnes};

at::Tensor Normalize(const ParameterSet& parameters, std::optional<ParameterId> scale,
                     const at::Tensor& features, Capture* capture) {
  if (!scale.has_value()) return features;
  at::Tensor output = RmsNorm(features, parameters[*scale]);
  if (capture != nullptr) capture->layer_outputs.push_back(output);
  return output;
}

}  // namespace

BlockNorms BlockNormsOf(absl::string_view name) {
  if (name == "primer") return {NormPlacement::kBefore, NormPlacement::kAfter};
  if (name == "residual_post") return {NormPlacement::kResidualPost, NormPlacement::kResidualPost};
  return {NormPlacement::kSandwich, NormPlacement::kSandwich};
}

NormedResidual::NormedResidual(ParameterLayout& layout, const std::string& name,
                               NormPlacement placement, int64_t d)
    : placement_(placement) {
  if (placement != NormPlacement::kAfter) before_ = layout.Add(name + ".norm.scale", {d}, kOnes);
  if (placement != NormPlacement::kBefore) {
    after_ = layout.Add(name + ".output_norm.scale", {d}, kOnes);
  }
}

at::Tensor NormedResidual::operator()(const ParameterSet& parameters, const at::Tensor& h,
                                      absl::FunctionRef<at::Tensor(const at::Tensor&)> sublayer,
                                      Capture* capture) const {
  const at::Tensor change = sublayer(Normalize(parameters, before_, h, capture));
  if (placement_ == NormPlacement::kResidualPost) {
    return Normalize(parameters, after_, h.add(change), capture);
  }
  return h.add(Normalize(parameters, after_, change, capture));
}

ResidualNorm::ResidualNorm(ParameterLayout& layout, const std::string& name, int64_t d)
    : scale_(layout.Add(name + ".scale", {d}, {.kind = Initializer::Kind::kOnes})),
      offset_(layout.Add(name + ".offset", {d}, {.kind = Initializer::Kind::kZeros})) {}

Normed ResidualNorm::operator()(const ParameterSet& parameters, const at::Tensor& h,
                                const at::Tensor& change, Capture* capture) const {
  Normed output = AddLayerNorm(h, change, parameters[scale_], parameters[offset_]);
  if (capture != nullptr) capture->layer_outputs.push_back(output.features);
  return output;
}

}  // namespace lengthwise::models
