// Residual connections with the norms around them, of which every block of a Transformer has two.
#ifndef LENGTHWISE_MODELS_NETWORKS_NORMED_RESIDUAL_H_
#define LENGTHWISE_MODELS_NETWORKS_NORMED_RESIDUAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Where norms stand around a sub-layer f.
enum class NormPlacement {
  kBefore,        // x + f(N(x))
  kAfter,         // x + N(f(x))
  kSandwich,      // x + N(f(N(x)))
  kResidualPost,  // N(x + f(N(x)))
};

// The placements around a block's two sub-layers.
struct BlockNorms {
  NormPlacement attention;
  NormPlacement feed_forward;
};

// Of the parameter `norm` of networks: "sandwich", "residual_post", or "primer", which has a norm
// before attention and one after the feed-forward layer.
BlockNorms BlockNormsOf(absl::string_view name);

// With RMS norms: a decoder's.
class NormedResidual {
 public:
  // Adds the gains that the placement needs, "<name>.norm.scale" and "<name>.output_norm.scale" of
  // `d` features, ones, to the layout.
  NormedResidual(ParameterLayout& layout, const std::string& name, NormPlacement placement,
                 int64_t d);

  // What becomes of `h` [P, B, n, d] with `sublayer`, which keeps the shape. `capture` keeps the
  // norms' outputs unless it is null.
  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& h,
                        absl::FunctionRef<at::Tensor(const at::Tensor&)> sublayer,
                        Capture* capture) const;

 private:
  NormPlacement placement_;
  std::optional<ParameterId> before_;
  std::optional<ParameterId> after_;
};

// With the layer norm behind the addition: an encoder's (post-layer-norm).
class ResidualNorm {
 public:
  // Adds "<name>.scale", ones, and "<name>.offset", zeros, of `d` features to the layout.
  ResidualNorm(ParameterLayout& layout, const std::string& name, int64_t d);

  // LN(h + change), [P, B, n, d], which `capture` keeps among its layer outputs unless it is null.
  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& h,
                        const at::Tensor& change, Capture* capture) const;

 private:
  ParameterId scale_;
  ParameterId offset_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_NORMED_RESIDUAL_H_
