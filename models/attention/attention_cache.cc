#include "models/attention/attention_cache.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/softmax.h"
#include "c10/core/GradMode.h"
#include "models/attention/attention.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"

namespace lengthwise::models {

AttentionCache::AttentionCache(const Encoding& encoding, int64_t block, int64_t heads,
                               int64_t d_model, int64_t sequences, const at::Tensor& positions,
                               const at::Tensor& like)
    : encoding_(encoding),
      block_(block),
      heads_(heads),
      head_size_(d_model / heads),
      each_(positions.dim() == 3),
      positions_(each_ ? positions.squeeze(0) : positions),
      // The positions of later tokens are not known yet.
      rows_at_once_(each_ ? 1 : encoding.RowsAtOnce(positions_.size(0), positions_.size(1))) {
  const std::vector<int64_t> shape = {positions_.size(0) * (each_ ? 1 : sequences) * heads,
                                      positions_.size(1), head_size_};
  keys_ = at::empty(shape, like.options().requires_grad(false));
  values_ = at::empty(shape, like.options().requires_grad(false));
}

at::Tensor AttentionCache::Attend(const ParameterSet& parameters, const at::Tensor& qkv) {
  if (!each_) return Append(parameters, qkv);
  return Append(parameters.Copies(0, qkv.size(1)), qkv.transpose(0, 1)).transpose(0, 1);
}

at::Tensor AttentionCache::Append(const ParameterSet& parameters, const at::Tensor& given_qkv) {
  const c10::NoGradGuard no_gradients;
  const int64_t members = given_qkv.size(0), sequences = given_qkv.size(1),
                tokens = given_qkv.size(2);
  const at::Tensor qkv =
      encoding_.Scaled(parameters, block_, positions_.narrow(1, seen_, tokens), seen_, given_qkv);
  std::vector<at::Tensor> parts = Widened(qkv).split(heads_ * head_size_, 3);
  for (at::Tensor& part : parts) part = SplitHeads(part, heads_);  // [P, B, H, k, dh]
  encoding_.Rotate(parameters, block_, positions_.narrow(1, seen_, tokens), parts[0], parts[1]);
  keys_.narrow(1, seen_, tokens).view(parts[1].sizes()).copy_(parts[1]);
  values_.narrow(1, seen_, tokens).view(parts[2].sizes()).copy_(parts[2]);

  // A prompt is computed at once. Later tokens find its keys and values in the cache.
  if (seen_ == 0 && tokens > 1) {
    seen_ = tokens;
    return models::Attend(encoding_, parameters, block_, heads_, positions_.narrow(1, 0, tokens),
                          given_qkv, nullptr);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(head_size_));
  const at::Tensor queries = parts[0].mul(scale);
  std::vector<at::Tensor> mixed;
  for (int64_t r = 0; r < tokens; ++r) {
    const int64_t row = seen_++;
    ProvideTerms(parameters, row);
    const at::Tensor query = queries.narrow(3, r, 1);
    at::Tensor biased = query;
    if (terms_.content_bias.defined()) {
      biased = query.add(terms_.content_bias.unsqueeze(1).unsqueeze(3), scale);
    }
    at::Tensor logits = MatrixProduct(biased.reshape({members * sequences * heads_, 1, head_size_}),
                                      keys_.narrow(1, 0, seen_).transpose(1, 2))
                            .view({members, sequences, heads_, 1, seen_});
    AddTerms(query, row, logits);
    mixed.push_back(
        MatrixProduct(at::softmax(logits, -1).view({members * sequences * heads_, 1, seen_}),
                      values_.narrow(1, 0, seen_))
            .view({members, sequences, 1, heads_ * head_size_}));
  }
  return mixed.size() == 1 ? mixed[0] : at::cat(mixed, 2);
}

void AttentionCache::ProvideTerms(const ParameterSet& parameters, int64_t row) {
  if (row < end_row_) return;
  const int64_t all = positions_.size(1);
  first_row_ = rows_at_once_ >= all ? 0 : row;
  end_row_ = std::min(first_row_ + rows_at_once_, all);
  terms_ = encoding_.Terms(parameters, block_, positions_.narrow(1, 0, end_row_), first_row_,
                           end_row_ - first_row_);
}

void AttentionCache::AddTerms(const at::Tensor& query, int64_t row, at::Tensor& logits) const {
  const int64_t keys = row + 1;
  if (terms_.relative.defined()) {
    const double scale = 1 / std::sqrt(static_cast<double>(head_size_));
    const at::Tensor relative =  // [P, H, dh, keys]
        terms_.toeplitz ? terms_.relative.narrow(3, end_row_ - 1 - row, keys)
                        : terms_.relative.select(3, row - first_row_).narrow(3, 0, keys);
    const at::Tensor biased =
        query.add(terms_.position_bias.unsqueeze(1).unsqueeze(3), scale).squeeze(3);
    logits.add_(MatrixProduct(biased.transpose(1, 2), relative).transpose(1, 2).unsqueeze(3));
  }
  if (terms_.additive.defined()) {
    logits.add_(terms_.additive.narrow(2, row - first_row_, 1).narrow(3, 0, keys).unsqueeze(1));
  }
}

}  // namespace lengthwise::models
