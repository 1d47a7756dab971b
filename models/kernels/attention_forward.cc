#include <algorithm>
#include <cmath>
#include <cstdint>

#include "models/kernels/attention.h"
#include "models/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/attention_forward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/heads-inl.h"
#include "models/kernels/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

// Sequences in a unit of work, all of one head. They are few enough to stay in the second-level
// cache until every head was computed. Data that they share is prepared once for the unit.
constexpr int64_t kSequencesAlone = 4;
constexpr int64_t kSequencesWithTerms = 8;
constexpr int64_t kSequencesWithPairs = 32;

class Forward {
 public:
  Forward(const AttentionInputs& inputs, const HeadVectors<float>& output, float* log_sum_exp)
      : inputs_(inputs),
        shape_(inputs.shape),
        output_(output),
        log_sum_exp_(log_sum_exp),
        sizes_(inputs.shape),
        terms_(inputs, sizes_, scratch_),
        // One at a time stays in the nearest cache.
        together_(terms_.per_panel() ? kSequencesWithPairs : 1),
        keys_(scratch_.Zeros(together_ * sizes_.key_rows)),
        values_(scratch_.Zeros(together_ * sizes_.key_rows)),
        contents_(scratch_.Zeros(together_ * sizes_.query_rows)),
        rows_(scratch_.Zeros(std::max(sizes_.query_rows, sizes_.key_rows))),
        weights_(scratch_.Zeros(sizes_.keys * kLanes)),
        mixed_(scratch_.Zeros(sizes_.panel)) {
    if (terms_.relative()) positions_ = scratch_.Zeros(together_ * sizes_.query_rows);
  }

  static int64_t UnitSequences(const AttentionInputs& inputs) {
    const AttentionTerms& terms = inputs.terms;
    if (terms.relative != nullptr && !terms.toeplitz) return kSequencesWithPairs;
    const bool any = terms.relative != nullptr || terms.additive != nullptr;
    return any ? kSequencesWithTerms : kSequencesAlone;
  }
  static int64_t Chunks(const AttentionInputs& inputs) {
    const int64_t sequences = UnitSequences(inputs);
    return (inputs.shape.sequences + sequences - 1) / sequences;
  }

  // Units of the same sequences follow each other, because their heads share cache lines.
  void Unit(int64_t unit) {
    const int64_t chunk = unit / shape_.heads % Chunks(inputs_);
    p_ = unit / shape_.heads / Chunks(inputs_);
    h_ = unit % shape_.heads;
    terms_.SelectHead(p_, h_);
    const int64_t first = chunk * UnitSequences(inputs_);
    const int64_t last = std::min(first + UnitSequences(inputs_), shape_.sequences);
    for (int64_t b = first; b < last; b += together_) Sequences(b, std::min(together_, last - b));
  }

 private:
  void Sequences(int64_t first, int64_t count) {
    for (int64_t g = 0; g < count; ++g) Pack(first + g, g);
    for (int64_t i = 0; i < shape_.queries; i += kLanes) {
      const int64_t queries = std::min(kLanes, shape_.queries - i);
      terms_.SelectPanel(i, queries);
      for (int64_t g = 0; g < count; ++g) Panel(first + g, g, i, queries);
    }
  }

  void Pack(int64_t b, int64_t g) {
    const int64_t features = sizes_.features;
    float *keys = keys_ + g * sizes_.key_rows, *contents = contents_ + g * sizes_.query_rows;
    terms_.CopyAndTurn(inputs_.keys.Item(p_, b, h_), inputs_.keys.token, shape_.keys, rows_);
    MakeOctets(rows_, features, shape_.keys, features, features, keys);
    CopyRows(inputs_.values.Item(p_, b, h_), inputs_.values.token, shape_.keys, shape_.head_size,
             features, values_ + g * sizes_.key_rows);
    terms_.CopyAndTurn(inputs_.queries.Item(p_, b, h_), inputs_.queries.token, shape_.queries,
                       rows_);
    terms_.MakeQueryPanels(rows_, contents,
                           positions_ == nullptr ? nullptr : positions_ + g * sizes_.query_rows);
  }

  // Computes the panel of `queries` queries from i on, of sequence b, which is the unit's g-th.
  void Panel(int64_t b, int64_t g, int64_t i, int64_t queries) {
    const Floats d;
    const int64_t panel = g * sizes_.query_rows + i * sizes_.features;
    const int64_t keys = RoundUp(terms_.Seen(i + queries - 1), kEight);
    auto maximum = hn::Set(d, kMasked);
    for (int64_t j = 0; j < keys; j += kEight) {
      const Eight logits =
          terms_.Logits(contents_ + panel, positions_ == nullptr ? nullptr : positions_ + panel,
                        keys_ + g * sizes_.key_rows, j);
      StoreEight(logits, kLanes, weights_ + j * kLanes);
      maximum = hn::Max(maximum, Maximum(logits));
    }
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j) {
      const auto weight = Exp(hn::Sub(hn::LoadU(d, weights_ + j * kLanes), maximum));
      sum = hn::Add(sum, weight);
      hn::StoreU(weight, d, weights_ + j * kLanes);
    }
    std::fill_n(mixed_, sizes_.panel, 0.0F);
    AddMixed(weights_, values_ + g * sizes_.key_rows, keys, sizes_.features, mixed_);
    const auto factor = hn::Div(hn::Set(d, 1.0F), sum);
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      float* feature = mixed_ + c * kLanes;
      hn::StoreU(hn::Mul(factor, hn::LoadU(d, feature)), d, feature);
    }
    Transpose(mixed_, kLanes, shape_.head_size, queries,
              output_.Item(p_, b, h_) + i * output_.token, output_.token);
    if (log_sum_exp_ != nullptr) StoreLogSumExp(maximum, sum, b, i, queries);
  }

  void StoreLogSumExp(FloatVector maximum, FloatVector sum, int64_t b, int64_t i, int64_t queries) {
    const Floats d;
    HWY_ALIGN float maxima[kLanes], sums[kLanes];
    hn::Store(maximum, d, maxima);
    hn::Store(sum, d, sums);
    const int64_t item = (p_ * shape_.sequences + b) * shape_.heads + h_;
    for (int64_t r = 0; r < queries; ++r) {
      log_sum_exp_[item * shape_.queries + i + r] = maxima[r] + std::log(sums[r]);
    }
  }

  const AttentionInputs& inputs_;
  const AttentionShape& shape_;
  const HeadVectors<float>& output_;
  float* log_sum_exp_;
  const HeadSizes sizes_;
  Scratch scratch_;
  HeadTerms terms_;
  const int64_t together_;
  // Buffers for `together_` sequences: octets of keys, rows of values, and panels of queries for
  // the products with keys and with R.
  float* keys_;
  float* values_;
  float* contents_;
  float* positions_ = nullptr;
  // One sequence on its way into these buffers.
  float* rows_;
  // Buffers for one panel: logits, then their exponentials, [keys, lanes], and its output.
  float* weights_;
  float* mixed_;
  int64_t p_ = 0;
  int64_t h_ = 0;
};

void RunForward(const AttentionInputs& inputs, const HeadVectors<float>& output, float* log_sum_exp,
                const ParallelFor& parallel_for) {
  const AttentionShape& shape = inputs.shape;
  parallel_for(shape.members * shape.heads * Forward::Chunks(inputs),
               [&](int64_t begin, int64_t end) {
                 Forward forward(inputs, output, log_sum_exp);
                 for (int64_t unit = begin; unit < end; ++unit) forward.Unit(unit);
               });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(RunForward);

void AttentionForward(const AttentionInputs& inputs, const HeadVectors<float>& output,
                      float* log_sum_exp, const ParallelFor& parallel_for) {
  HWY_DYNAMIC_DISPATCH(RunForward)(inputs, output, log_sum_exp, parallel_for);
}

}  // namespace lengthwise::kernels
#endif
