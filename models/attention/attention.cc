#include "models/attention/attention.h"

#include <cmath>

#include "ATen/ops/matmul.h"
#include "ATen/ops/scaled_dot_product_attention.h"
#include "ATen/ops/softmax.h"

namespace lengthwise::models {
namespace {

// [P, B, n, d] -> [P, B, H, n, dh]
at::Tensor SplitHeads(const at::Tensor& features, int64_t heads) {
  return features.unflatten(3, {heads, features.size(3) / heads}).transpose(2, 3);
}

// LibTorch's fused kernel on [P * B, H, n, dh]. `term` may be undefined, otherwise P is 1 and it is
// a constant.
at::Tensor FusedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& term) {
  const std::optional<at::Tensor> mask =
      term.defined() ? std::optional<at::Tensor>(term.squeeze(0)) : std::nullopt;
  const at::Tensor mixed =
      at::scaled_dot_product_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), mask);
  return mixed.unflatten(0, {q.size(0), q.size(1)});
}

}  // namespace

at::Tensor Attend(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                  int64_t heads, const at::Tensor& positions, const at::Tensor& queries,
                  const at::Tensor& keys, const at::Tensor& values, AttentionMaps* maps) {
  at::Tensor q = SplitHeads(queries, heads);
  at::Tensor k = SplitHeads(keys, heads);
  const at::Tensor v = SplitHeads(values, heads);
  encoding.Rotate(positions, q, k);
  const at::Tensor term = encoding.LogitTerm(parameters, block, positions, q, k);

  at::Tensor mixed;
  // The fused kernel gives a learned term no gradient.
  const bool constant_term = !term.defined() || (!term.requires_grad() && term.size(0) == 1);
  if (maps == nullptr && constant_term) {
    mixed = FusedAttention(q, k, v, term);
  } else {
    at::Tensor logits =
        at::matmul(q.mul(1 / std::sqrt(static_cast<double>(q.size(-1)))), k.transpose(-1, -2));
    if (term.defined()) logits.add_(term);
    const at::Tensor probabilities = at::softmax(logits, -1);
    mixed = at::matmul(probabilities, v);
    if (maps != nullptr) *maps = {.logits = logits, .probabilities = probabilities};
  }
  return mixed.transpose(2, 3).flatten(3, 4);
}

}  // namespace lengthwise::models
