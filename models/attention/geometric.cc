#include "models/attention/geometric.h"

#include <cmath>

#include "ATen/ops/arange.h"
#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/cumsum.h"
#include "ATen/ops/log_sigmoid.h"
#include "ATen/ops/where.h"
#include "models/layers/layers.h"

namespace lengthwise::models {
namespace {

// j - i, [n, n]
at::Tensor Steps(const at::Tensor& logits) {
  const at::Tensor places = at::arange(logits.size(-1), logits.options().dtype(at::kLong));
  return places.unsqueeze(0).sub(places.unsqueeze(1));
}

}  // namespace

at::Tensor GeometricProbabilities(const at::Tensor& logits) {
  const int64_t n = logits.size(-1);
  const at::Tensor steps = Steps(logits);
  const at::Tensor itself = steps.eq(0);
  // log(1 - sigmoid(l)) = log sigmoid(-l). misses[k] sums it over the keys before k, [..., n, n +
  // 1].
  const at::Tensor misses = at::constant_pad_nd(
      at::cumsum(at::log_sigmoid(logits.neg()).masked_fill(itself, 0), -1), {1, 0});
  // S_ij is the range of keys [first, end) without i.
  const at::Tensor query = at::arange(n, steps.options()).unsqueeze(1);
  const at::Tensor first = query.sub(steps.abs()).add(1).clamp(0, n);
  const at::Tensor end = query.add(steps.abs()).add(steps.lt(0)).clamp(0, n);
  const at::Tensor nearer = misses.gather(-1, end.expand(logits.sizes()))
                                .sub(misses.gather(-1, first.expand(logits.sizes())));
  return at::log_sigmoid(logits).add(nearer).exp().masked_fill(itself, 0);
}

at::Tensor NormalizeRows(const at::Tensor& probabilities) {
  return probabilities.div(probabilities.sum(-1, /*keepdim=*/true).clamp_min(1e-12));
}

GeometricIds::GeometricIds(ParameterLayout& layout, const std::string& prefix, int64_t heads,
                           int64_t d_model) {
  const auto constant = [](double value) {
    return Initializer{.kind = Initializer::Kind::kConstant, .value = value};
  };
  const int64_t head_size = d_model / heads;
  content_bias = layout.Add(prefix + "content_bias", {heads, head_size}, constant(0));
  direction = layout.Add(prefix + "direction", {d_model, 2 * heads}, HaikuLinear(d_model));
  direction_bias = layout.Add(prefix + "direction_bias", {2 * heads}, constant(0));
  content_scale = layout.Add(prefix + "content_scale", {1},
                             constant(1 / std::sqrt(static_cast<double>(head_size))));
  direction_scale = layout.Add(prefix + "direction_scale", {1}, constant(1));
  offset = layout.Add(prefix + "offset", {1}, constant(0));
}

at::Tensor AttendGeometrically(const Encoding& encoding, const ParameterSet& parameters,
                               const GeometricIds& ids, int64_t block, int64_t heads,
                               const at::Tensor& positions, const at::Tensor& features,
                               const at::Tensor& queries, const at::Tensor& keys,
                               const at::Tensor& values, AttentionMaps* maps) {
  at::Tensor q = SplitHeads(Widened(queries), heads);
  at::Tensor k = SplitHeads(Widened(keys), heads);
  const at::Tensor v = SplitHeads(Widened(values), heads);
  encoding.Rotate(parameters, block, positions, q, k);
  // [P, 1] -> [P, 1, 1, 1, 1]
  const auto scalar = [&](ParameterId id) { return parameters[id].view({-1, 1, 1, 1, 1}); };
  const at::Tensor u = parameters[ids.content_bias].unsqueeze(1).unsqueeze(3);  // [P, 1, H, 1, dh]
  // [P, B, n, 2 H] -> [P, B, 2 H, n]
  const at::Tensor directions =
      Linear(features, parameters[ids.direction], parameters[ids.direction_bias])
          .transpose(2, 3)
          .mul(parameters[ids.direction_scale].view({-1, 1, 1, 1}));
  at::Tensor logits =
      Product(q.add(u).mul(scalar(ids.content_scale)), k.transpose(-1, -2)).add(scalar(ids.offset));
  const at::Tensor back = directions.narrow(2, 0, heads).unsqueeze(-1);
  const at::Tensor front = directions.narrow(2, heads, heads).unsqueeze(-1);
  logits = logits.add(at::where(Steps(logits).gt(0), front, back));
  const at::Tensor term = encoding.LogitTerm(parameters, block, positions, q, k);
  if (term.defined()) logits = logits.add(term);
  const at::Tensor probabilities = NormalizeRows(GeometricProbabilities(logits));
  if (maps != nullptr) *maps = {.logits = logits, .probabilities = probabilities};
  return Product(probabilities, v).transpose(2, 3).flatten(3, 4);
}

}  // namespace lengthwise::models
