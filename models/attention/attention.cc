#include "models/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/scaled_dot_product_attention.h"
#include "ATen/ops/softmax.h"
#include "ATen/ops/stack.h"
#include "c10/core/GradMode.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"

namespace lengthwise::models {
namespace {

// Computes terms for some rows at a time if no gradient is needed and the terms of all rows would
// be large.
at::Tensor AttendFused(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                       int64_t heads, const at::Tensor& positions, const at::Tensor& qkv) {
  const int64_t n = qkv.size(2);
  const int64_t rows = c10::GradMode::is_enabled() ? n : encoding.RowsAtOnce(qkv.size(0), n);
  if (rows == n) {
    return FusedAttention(qkv, heads, encoding.Terms(parameters, block, positions, 0, n));
  }
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t count = std::min(rows, n - first);
    parts.push_back(FusedAttentionRows(qkv, heads, first, count,
                                       encoding.Terms(parameters, block, positions, first, count)));
  }
  return at::cat(parts, 2);
}

// Calls LibTorch's fused kernel on [P * B, H, n, size of a query]. `term` is undefined, or a
// constant with P = 1.
at::Tensor AttendWithConstantTerm(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& term, double scale) {
  const std::optional<at::Tensor> mask =
      term.defined() ? std::optional<at::Tensor>(term.squeeze(0)) : std::nullopt;
  const at::Tensor mixed =
      at::scaled_dot_product_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), mask,
                                       /*dropout_p=*/0, /*is_causal=*/false, scale);
  return mixed.unflatten(0, {q.size(0), q.size(1)});
}

// Attend where each sequence has its own `positions` [P, B, n]: takes a member's sequences as
// members with the same parameters.
at::Tensor AttendEach(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                      int64_t heads, const at::Tensor& positions, const at::Tensor& qkv,
                      AttentionMaps* maps) {
  std::vector<at::Tensor> mixed, logits, probabilities;
  for (int64_t p = 0; p < qkv.size(0); ++p) {
    AttentionMaps own;
    mixed.push_back(Attend(encoding, parameters.Copies(p, qkv.size(1)), block, heads,
                           positions.select(0, p), qkv.select(0, p).unsqueeze(1),
                           maps == nullptr ? nullptr : &own)
                        .squeeze(1));
    if (maps == nullptr) continue;
    logits.push_back(own.logits.squeeze(1));
    probabilities.push_back(own.probabilities.squeeze(1));
  }
  if (maps != nullptr) {
    *maps = {.logits = at::stack(logits), .probabilities = at::stack(probabilities)};
  }
  return at::stack(mixed);
}

}  // namespace

at::Tensor Attend(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                  int64_t heads, const at::Tensor& given_positions, const at::Tensor& given_qkv,
                  AttentionMaps* maps) {
  const at::Tensor positions = encoding.PositionsOfTerms(given_positions);
  if (positions.dim() == 3) {
    return AttendEach(encoding, parameters, block, heads, positions, given_qkv, maps);
  }
  const at::Tensor qkv = encoding.Scaled(parameters, block, positions, 0, given_qkv);
  if (maps == nullptr && CanUseTensorCores(qkv, heads)) {
    const AttentionTerms terms = encoding.TermsWithoutR(parameters, block, positions);
    if (HaveTensorKernels(terms)) return TensorAttention(qkv, terms);
  }
  if (maps == nullptr && CanFuse(qkv)) {
    return AttendFused(encoding, parameters, block, heads, positions, qkv);
  }
  const std::vector<at::Tensor> parts = Operand(qkv).split(qkv.size(3) / 3, 3);
  at::Tensor q = SplitHeads(parts[0], heads);
  at::Tensor k = SplitHeads(parts[1], heads);
  const at::Tensor v = SplitHeads(parts[2], heads);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  encoding.Rotate(parameters, block, positions, q, k);
  const at::Tensor term = encoding.LogitTerm(parameters, block, positions, q, k);

  at::Tensor mixed;
  // LibTorch's kernel computes no gradient for the term. It would also round a float32 term to
  // bfloat16, in which distances 256 and 257 are equal.
  const bool constant_term = !term.defined() || (!term.requires_grad() && term.size(0) == 1 &&
                                                 term.scalar_type() == q.scalar_type());
  // In a training step on a GPU, products are the form that PyTorch's ensembles have
  // (benchmarks/README.md). Their gradients are reproducible, those of LibTorch's kernel are not.
  const bool by_products = !q.is_cpu() && c10::GradMode::is_enabled();
  if (maps == nullptr && constant_term && !by_products) {
    mixed = AttendWithConstantTerm(q, k, v, term, scale);
  } else {
    at::Tensor logits = Widened(MatrixProduct(q.mul(scale), k.transpose(-1, -2)));
    if (term.defined()) logits.add_(term);
    const at::Tensor probabilities = at::softmax(logits, -1);
    mixed = MatrixProduct(Operand(probabilities), v);
    if (maps != nullptr) *maps = {.logits = logits, .probabilities = probabilities};
  }
  return mixed.transpose(2, 3).flatten(3, 4);
}

}  // namespace lengthwise::models
