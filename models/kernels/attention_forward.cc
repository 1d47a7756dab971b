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
#include "models/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

// Sequences of one unit of work, which is these of one head. What they share is brought into form
// once for all of a unit; without such terms, few sequences stay in the second cache until all
// heads were there.
constexpr int64_t kSequencesWithTerms = 16;
constexpr int64_t kSequencesAlone = 4;

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
        together_(terms_.relative() ? kSequencesWithTerms : 1),
        keys_(scratch_.Zeros(together_ * sizes_.matrix)),
        values_(scratch_.Zeros(together_ * sizes_.matrix)),
        contents_(scratch_.Zeros(together_ * shape_.queries * sizes_.features)),
        rows_(scratch_.Zeros(kRows * sizes_.width)),
        mixed_(scratch_.Zeros(sizes_.features)),
        zeros_(scratch_.Zeros(sizes_.features)) {
    if (terms_.relative()) {
      positions_ = scratch_.Zeros(together_ * shape_.queries * sizes_.features);
    }
  }

  static int64_t UnitSequences(const AttentionInputs& inputs) {
    return inputs.terms.relative == nullptr ? kSequencesAlone : kSequencesWithTerms;
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
    for (int64_t g = 0; g < count; ++g) {
      const int64_t b = first + g, queries = g * shape_.queries * sizes_.features;
      terms_.PackKeys(inputs_.keys.Item(p_, b, h_), inputs_.keys.token, keys_ + g * sizes_.matrix);
      Transpose(inputs_.values.Item(p_, b, h_), inputs_.values.token, shape_.keys, shape_.head_size,
                values_ + g * sizes_.matrix, sizes_.width);
      terms_.PackQueries(inputs_.queries.Item(p_, b, h_), inputs_.queries.token,
                         contents_ + queries,
                         positions_ == nullptr ? nullptr : positions_ + queries);
    }
    for (int64_t i = 0; i < shape_.queries; i += kRows) {
      const int64_t rows = std::min(kRows, shape_.queries - i);
      terms_.SelectRows(i, rows);
      for (int64_t g = 0; g < count; ++g) {
        Rows(first + g, g, i, rows);
      }
    }
  }

  // The selected rows, from query i on, of sequence b, the g-th of those together. One thing for
  // all rows after another: a row alone would wait for each of its results.
  void Rows(int64_t b, int64_t g, int64_t i, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t query = (g * shape_.queries + i + r) * sizes_.features;
      const int64_t keys = terms_.Seen(r);
      Logits(terms_, sizes_, keys, PaddedKeys(keys), r, contents_ + query,
             positions_ == nullptr ? nullptr : positions_ + query, keys_ + g * sizes_.matrix,
             rows_ + r * sizes_.width);
    }
    RowSoftmax softmax[kRows];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t keys = terms_.Seen(r);
      softmax[r] = Exponentiate(keys, PaddedKeys(keys), rows_ + r * sizes_.width);
    }
    for (int64_t r = 0; r < rows; ++r) {
      Reduce(rows_ + r * sizes_.width, values_ + g * sizes_.matrix, sizes_.width,
             PaddedKeys(terms_.Seen(r)), sizes_.features, mixed_);
      AddAndScale(mixed_, zeros_, 1 / softmax[r].sum, sizes_.features, mixed_);
      CopyFeatures(mixed_, shape_.head_size, output_.Item(p_, b, h_) + (i + r) * output_.token);
    }
    if (log_sum_exp_ == nullptr) return;
    const int64_t item = (p_ * shape_.sequences + b) * shape_.heads + h_;
    for (int64_t r = 0; r < rows; ++r) {
      log_sum_exp_[item * shape_.queries + i + r] = softmax[r].maximum + std::log(softmax[r].sum);
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
  float* keys_;    // [together, features, width]
  float* values_;  // [together, features, width]
  // [together, n, features]: queries as they meet keys and R.
  float* contents_;
  float* positions_ = nullptr;
  float* rows_;  // [rows, width]: logits, then exponentials
  float* mixed_;
  const float* zeros_;
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
