#include "models/layers/layers.h"

#include "ATen/ops/addmm.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/baddbmm.h"
#include "ATen/ops/bmm.h"
#include "ATen/ops/embedding.h"
#include "ATen/ops/layer_norm.h"
#include "ATen/ops/mm.h"
#include "models/layers/fused_linear.h"

namespace lengthwise::models {
namespace {

// [P, d] -> [P, 1, 1, d]
at::Tensor PerFeature(const at::Tensor& parameter) { return parameter.unsqueeze(1).unsqueeze(1); }

}  // namespace

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight) {
  if (CanFuseLinear(features, weight)) return FusedLinear(features, weight, at::Tensor());
  const int64_t members = features.size(0), rows = features.size(1), columns = features.size(2);
  const at::Tensor product = members == 1 ? at::mm(features.flatten(0, 2), weight.squeeze(0))
                                          : at::bmm(features.flatten(1, 2), weight);
  return product.view({members, rows, columns, weight.size(2)});
}

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias) {
  if (CanFuseLinear(features, weight)) return FusedLinear(features, weight, bias);
  const int64_t members = features.size(0), rows = features.size(1), columns = features.size(2);
  const at::Tensor sum = members == 1
                             ? at::addmm(bias.squeeze(0), features.flatten(0, 2), weight.squeeze(0))
                             : at::baddbmm(bias.unsqueeze(1), features.flatten(1, 2), weight);
  return sum.view({members, rows, columns, weight.size(2)});
}

at::Tensor LayerNorm(const at::Tensor& features, const at::Tensor& scale,
                     const at::Tensor& offset) {
  const int64_t d = features.size(3);
  if (features.size(0) == 1) {
    return at::layer_norm(features, {d}, scale.squeeze(0), offset.squeeze(0), kLayerNormEpsilon);
  }
  return at::layer_norm(features, {d}, {}, {}, kLayerNormEpsilon)
      .mul(PerFeature(scale))
      .add(PerFeature(offset));
}

at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table) {
  const int64_t members = table.size(0), width = table.size(1);
  if (members == 1) return at::embedding(table.squeeze(0), tokens);
  // One table with the members' tables below each other.
  const at::Tensor first_row =
      at::arange(0, members * width, width, tokens.options()).view({members, 1, 1});
  return at::embedding(table.flatten(0, 1), tokens.add(first_row));
}

}  // namespace lengthwise::models
