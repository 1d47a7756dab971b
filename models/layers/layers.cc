#include "models/layers/layers.h"

#include "ATen/ops/addmm.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/baddbmm.h"
#include "ATen/ops/bmm.h"
#include "ATen/ops/embedding.h"
#include "ATen/ops/layer_norm.h"
#include "ATen/ops/mm.h"
#include "models/layers/fused_linear.h"
#include "models/layers/products.h"

namespace lengthwise::models {
namespace {

// [P, d] -> [P, 1, 1, d]
at::Tensor PerFeature(const at::Tensor& parameter) { return parameter.unsqueeze(1).unsqueeze(1); }

}  // namespace

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight) {
  if (CanFuseLinear(features, weight)) return FusedLinear(features, weight, at::Tensor());
  const int64_t members = features.size(0), rows = features.size(1), columns = features.size(2);
  const at::Tensor x = Operand(features), w = Operand(weight);
  const at::Tensor product =
      members == 1 ? at::mm(x.flatten(0, 2), w.squeeze(0)) : at::bmm(x.flatten(1, 2), w);
  return product.view({members, rows, columns, w.size(2)}).to(features.scalar_type());
}

at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias) {
  if (CanFuseLinear(features, weight)) return FusedLinear(features, weight, bias);
  const int64_t members = features.size(0), rows = features.size(1), columns = features.size(2);
  const at::Tensor x = Operand(features), w = Operand(weight), b = Operand(bias);
  const at::Tensor sum = members == 1 ? at::addmm(b.squeeze(0), x.flatten(0, 2), w.squeeze(0))
                                      : at::baddbmm(b.unsqueeze(1), x.flatten(1, 2), w);
  return sum.view({members, rows, columns, w.size(2)}).to(features.scalar_type());
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
  // Looks up all members in one table, the concatenation of their tables.
  const at::Tensor first_row =
      at::arange(0, members * width, width, tokens.options()).view({members, 1, 1});
  return at::embedding(table.flatten(0, 1), tokens.add(first_row));
}

}  // namespace lengthwise::models
