// Residual connections with their norms. Every block of a Transformer has two.
#ifndef LENGTHWISE_MODELS_NETWORKS_NORMED_RESIDUAL_H_
#define LENGTHWISE_MODELS_NETWORKS_NORMED_RESIDUAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "models/layers/norms.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// Placement of norms N around a sub-layer f.
enum class NormPlacement {
  kBefore,        // x + f(N(x))
  kAfter,         // x + N(f(x))
  kSandwich,      // x + N(f(N(x)))
  kResidualPost,  // N(x + f(N(x)))
};

// Norm placements of a block's two sub-layers.
struct BlockNorms {
  NormPlacement attention;
  NormPlacement feed_forward;
};

// Placements for the networks' parameter `norm`: "sandwich", "residual_post", or "primer", which
// has a norm before attention and one after the feed-forward layer.
BlockNorms BlockNormsOf(absl::string_view name);

// Residual connection of a decoder, with RMS norms.
class NormedResidual {
 public:
  // Adds the scales that the placement needs to the layout: "<name>.norm.scale" and
  // "<name>.output_norm.scale", `d` ones each.
  NormedResidual(ParameterLayout& layout, const std::string& name, NormPlacement placement,
                 int64_t d);

  // Applies `sublayer`, which keeps the shape, to `h` [P, B, n, d]. A non-null `capture` keeps the
  // norms' outputs.
  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& h,
                        absl::FunctionRef<at::Tensor(const at::Tensor&)> sublayer,
                        Capture* capture) const;

 private:
  NormPlacement placement_;
  std::optional<ParameterId> before_;
  std::optional<ParameterId> after_;
};

// Residual connection of an encoder, with layer norm after the addition (post-layer-norm).
class ResidualNorm {
 public:
  // Adds "<name>.scale", `d` ones, and "<name>.offset", `d` zeros, to the layout.
  ResidualNorm(ParameterLayout& layout, const std::string& name, int64_t d);

  // LN(h + change), [P, B, n, d]. A non-null `capture` keeps it as a layer output.
  Normed operator()(const ParameterSet& parameters, const at::Tensor& h, const at::Tensor& change,
                    Capture* capture) const;

 private:
  ParameterId scale_;
  ParameterId offset_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_NORMED_RESIDUAL_H_
