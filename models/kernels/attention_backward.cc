#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/kernels/attention.h"
#include "models/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/attention_backward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "models/kernels/heads-inl.h"
#include "models/kernels/rows-inl.h"

#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_ONCE_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_ONCE_
namespace lengthwise::kernels {

// Sequences whose parts of the terms' gradients are summed together.
constexpr int64_t kGroup = 8;
constexpr int64_t kChunk = 32;
constexpr int64_t kMaxPartBytes = int64_t{64} << 20;

// What is summed over the sequences of a batch: a part for each chunk of sequences, [chunks, P, H,
// size], then the parts in order. With one chunk the part is the sum.
class ChunkedSum {
 public:
  ChunkedSum(float* sum, int64_t chunks, int64_t items, int64_t size)
      : sum_(sum), chunks_(chunks), items_(items), size_(size) {
    if (sum != nullptr && chunks > 1) {
      parts_ = hwy::AllocateAligned<float>(static_cast<size_t>(chunks * items * size));
    }
  }

  // Where chunk `chunk` of the item (a member's head) puts its part; null if the sum is not wanted.
  float* Part(int64_t chunk, int64_t item) const {
    if (sum_ == nullptr) return nullptr;
    return (chunks_ == 1 ? sum_ : parts_.get() + chunk * items_ * size_) + item * size_;
  }

  void Add(const ParallelFor& parallel_for) const {
    if (sum_ == nullptr || chunks_ == 1) return;
    parallel_for(items_, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * size_, last = end * size_;
      std::copy(parts_.get() + first, parts_.get() + last, sum_ + first);
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
        const float* part = parts_.get() + chunk * items_ * size_;
        for (int64_t i = first; i < last; ++i) sum_[i] += part[i];
      }
    });
  }

 private:
  float* sum_;
  int64_t chunks_;
  int64_t items_;
  int64_t size_;
  hwy::AlignedFreeUniquePtr<float[]> parts_;
};

// The gradients that sequences share, and the chunks in which they are summed. Depends on the shape
// of one member alone.
struct SharedGradients {
  SharedGradients(const AttentionInputs& inputs, const AttentionGradients& gradients)
      : chunk(ChunkSequences(inputs, gradients)),
        chunks((inputs.shape.sequences + chunk - 1) / chunk),
        relative(gradients.relative, chunks, Items(inputs), RelativeSize(inputs)),
        additive(gradients.additive, chunks, Items(inputs),
                 inputs.shape.queries * inputs.shape.keys),
        content_bias(gradients.content_bias, chunks, Items(inputs), inputs.shape.head_size),
        position_bias(gradients.position_bias, chunks, Items(inputs), inputs.shape.head_size) {}

  static int64_t Items(const AttentionInputs& inputs) {
    return inputs.shape.members * inputs.shape.heads;
  }

  static int64_t RelativeSize(const AttentionInputs& inputs) {
    const AttentionShape& shape = inputs.shape;
    return shape.head_size *
           (inputs.terms.toeplitz ? shape.queries + shape.keys - 1 : shape.queries * shape.keys);
  }

  static int64_t ChunkSequences(const AttentionInputs& inputs,
                                const AttentionGradients& gradients) {
    const AttentionShape& shape = inputs.shape;
    // As in the forward pass.
    if (inputs.terms.relative == nullptr && gradients.additive == nullptr) return 4;
    int64_t size = 0;
    if (gradients.relative != nullptr) size += RelativeSize(inputs);
    if (gradients.additive != nullptr) size += shape.queries * shape.keys;
    const int64_t bytes = shape.heads * size * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(1, kMaxPartBytes / std::max<int64_t>(1, bytes));
    const int64_t even = (shape.sequences + most - 1) / most;
    return std::max(kChunk, (even + kGroup - 1) / kGroup * kGroup);
  }

  int64_t chunk;
  int64_t chunks;
  ChunkedSum relative, additive, content_bias, position_bias;
};

}  // namespace lengthwise::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {
namespace {

static_assert(kGroup == 8 && kRows == 8, "AddOuterProducts takes eight rows");

class Backward {
 public:
  Backward(const AttentionInputs& inputs, const HeadVectors<const float>& output,
           const HeadVectors<const float>& output_gradient, const float* log_sum_exp,
           const AttentionGradients& gradients, const SharedGradients& shared)
      : inputs_(inputs),
        shape_(inputs.shape),
        output_(output),
        output_gradient_(output_gradient),
        log_sum_exp_(log_sum_exp),
        gradients_(gradients),
        shared_(shared),
        sizes_(inputs.shape),
        terms_(inputs, sizes_, scratch_),
        together_(terms_.relative() || gradients.additive != nullptr ? shared.chunk : 1),
        keys_(scratch_.Zeros(together_ * sizes_.matrix)),
        values_(scratch_.Zeros(together_ * sizes_.matrix)),
        key_gradients_(scratch_.Zeros(together_ * sizes_.matrix)),
        value_gradients_(scratch_.Zeros(together_ * sizes_.matrix)),
        padded_queries_((shape_.queries + kRows - 1) / kRows * kRows),
        contents_(scratch_.Zeros(together_ * padded_queries_ * sizes_.features)),
        mixed_gradients_(scratch_.Zeros(together_ * padded_queries_ * sizes_.features)),
        deltas_(scratch_.Zeros(together_ * padded_queries_)),
        probabilities_(scratch_.Zeros(kRows * sizes_.width)),
        logit_gradients_(scratch_.Zeros(kGroup * kRows * sizes_.width)),
        content_sums_(scratch_.Zeros(sizes_.features)),
        position_sums_(scratch_.Zeros(sizes_.features)),
        content_bias_sums_(scratch_.Zeros(sizes_.features)),
        position_bias_sums_(scratch_.Zeros(sizes_.features)) {
    if (terms_.relative()) {
      // The last group may be smaller than kGroup, but all of its rows are read.
      positions_ = scratch_.Zeros((together_ + kGroup) * padded_queries_ * sizes_.features);
    }
    if (gradients.relative != nullptr) {
      relative_rows_ = scratch_.Zeros(kRows * sizes_.matrix);
    }
    if (gradients.additive != nullptr) additive_rows_ = scratch_.Zeros(kRows * sizes_.width);
  }

  // Units of the same sequences follow each other, because their heads share cache lines.
  void Unit(int64_t unit) {
    const int64_t chunk = unit / shape_.heads % shared_.chunks;
    p_ = unit / shape_.heads / shared_.chunks;
    h_ = unit % shape_.heads;
    const int64_t item = p_ * shape_.heads + h_;
    terms_.SelectHead(p_, h_);
    relative_part_ = shared_.relative.Part(chunk, item);
    additive_part_ = shared_.additive.Part(chunk, item);
    if (relative_part_ != nullptr && inputs_.terms.toeplitz) {
      std::fill_n(relative_part_, SharedGradients::RelativeSize(inputs_), 0.0F);
    }
    std::fill_n(content_bias_sums_, sizes_.features, 0.0F);
    std::fill_n(position_bias_sums_, sizes_.features, 0.0F);
    const int64_t first = chunk * shared_.chunk;
    const int64_t last = std::min(first + shared_.chunk, shape_.sequences);
    for (int64_t b = first; b < last; b += together_) Sequences(b, std::min(together_, last - b));
    StoreBias(content_bias_sums_, shared_.content_bias.Part(chunk, item));
    StoreBias(position_bias_sums_, shared_.position_bias.Part(chunk, item));
  }

 private:
  void Sequences(int64_t first, int64_t count) {
    for (int64_t g = 0; g < count; ++g) Pack(first + g, g);
    std::fill_n(key_gradients_, count * sizes_.matrix, 0.0F);
    std::fill_n(value_gradients_, count * sizes_.matrix, 0.0F);
    for (int64_t i = 0; i < shape_.queries; i += kRows) {
      const int64_t rows = std::min(kRows, shape_.queries - i);
      terms_.SelectRows(i, rows);
      if (relative_part_ != nullptr) std::fill_n(relative_rows_, kRows * sizes_.matrix, 0.0F);
      if (additive_part_ != nullptr) std::fill_n(additive_rows_, kRows * sizes_.width, 0.0F);
      for (int64_t g = 0; g < count; g += kGroup) {
        Group(first + g, g, std::min(kGroup, count - g), i, rows);
      }
      if (relative_part_ != nullptr) StoreRelativeRows(i, rows);
      if (additive_part_ != nullptr) {
        for (int64_t r = 0; r < rows; ++r) {
          std::copy_n(additive_rows_ + r * sizes_.width, shape_.keys,
                      additive_part_ + (i + r) * shape_.keys);
        }
      }
    }
    for (int64_t g = 0; g < count; ++g) {
      terms_.UnpackKeyGradients(key_gradients_ + g * sizes_.matrix,
                                gradients_.keys.Item(p_, first + g, h_), gradients_.keys.token);
      Transpose(value_gradients_ + g * sizes_.matrix, sizes_.width, shape_.head_size, shape_.keys,
                gradients_.values.Item(p_, first + g, h_), gradients_.values.token);
    }
  }

  // Brings sequence b, the g-th of those together, into the forms that rows are made from. All at
  // once, because its memory is far apart for one head and must be waited for.
  void Pack(int64_t b, int64_t g) {
    const int64_t queries = g * padded_queries_ * sizes_.features;
    terms_.PackKeys(inputs_.keys.Item(p_, b, h_), inputs_.keys.token, keys_ + g * sizes_.matrix);
    Transpose(inputs_.values.Item(p_, b, h_), inputs_.values.token, shape_.keys, shape_.head_size,
              values_ + g * sizes_.matrix, sizes_.width);
    terms_.PackQueries(inputs_.queries.Item(p_, b, h_), inputs_.queries.token, contents_ + queries,
                       positions_ == nullptr ? nullptr : positions_ + queries);
    const float* outputs = output_.Item(p_, b, h_);
    const float* gradients = output_gradient_.Item(p_, b, h_);
    for (int64_t i = 0; i < shape_.queries; ++i) {
      const float* output = outputs + i * output_.token;
      float* gradient = mixed_gradients_ + queries + i * sizes_.features;
      CopyFeatures(gradients + i * output_gradient_.token, shape_.head_size, gradient);
      deltas_[g * padded_queries_ + i] = Dot(gradient, output, shape_.head_size);
    }
  }

  // Queries i .. i + rows - 1 of sequences b .. b + count - 1, the first of which is the first-th
  // of those together.
  void Group(int64_t b, int64_t first, int64_t count, int64_t i, int64_t rows) {
    const int64_t block = kRows * sizes_.width;
    // What the last of the rows sees is as much as any of them does.
    const int64_t width = PaddedKeys(terms_.Seen(rows - 1));
    if (count < kGroup && relative_part_ != nullptr) {
      std::fill_n(logit_gradients_ + count * block, (kGroup - count) * block, 0.0F);
    }
    for (int64_t g = 0; g < count; ++g) {
      float* logit_gradients = logit_gradients_ + g * block;
      if (rows < kRows) {
        std::fill_n(probabilities_, block, 0.0F);
        std::fill_n(logit_gradients, block, 0.0F);
      }
      Rows(b + g, first + g, i, rows, width, logit_gradients);
      const int64_t query = Query(first + g, i), matrix = (first + g) * sizes_.matrix;
      AddOuterProducts(contents_ + query, sizes_.features, logit_gradients, sizes_.width,
                       sizes_.features, width, key_gradients_ + matrix, sizes_.width);
      AddOuterProducts(mixed_gradients_ + query, sizes_.features, probabilities_, sizes_.width,
                       sizes_.features, width, value_gradients_ + matrix, sizes_.width);
    }
    for (int64_t r = 0; r < rows; ++r) {
      if (relative_part_ != nullptr) {
        AddOuterProducts(positions_ + Query(first, i + r), padded_queries_ * sizes_.features,
                         logit_gradients_ + r * sizes_.width, block, sizes_.features, width,
                         relative_rows_ + r * sizes_.matrix, sizes_.width);
      }
      for (int64_t g = 0; additive_part_ != nullptr && g < count; ++g) {
        AddRow(logit_gradients_ + g * block + r * sizes_.width, width,
               additive_rows_ + r * sizes_.width);
      }
    }
  }

  // Where query i of the g-th sequence is in contents_, positions_ and mixed_gradients_.
  int64_t Query(int64_t g, int64_t i) const { return (g * padded_queries_ + i) * sizes_.features; }

  // p, dl and the queries' gradients of the selected rows, from query i on, of sequence b, the g-th
  // of those together, for `width` keys: all that any of the rows sees. One thing for all rows
  // after another: a row alone would wait for each of its results.
  void Rows(int64_t b, int64_t g, int64_t i, int64_t rows, int64_t width, float* logit_gradients) {
    const int64_t matrix = g * sizes_.matrix, stride = sizes_.width;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t query = Query(g, i + r);
      Logits(terms_, sizes_, terms_.Seen(r), width, r, contents_ + query,
             positions_ == nullptr ? nullptr : positions_ + query, keys_ + matrix,
             probabilities_ + r * stride);
      Product</*kAdd=*/false>(mixed_gradients_ + query, sizes_.features, values_ + matrix, stride,
                              width, logit_gradients + r * stride);
    }
    const int64_t item = (p_ * shape_.sequences + b) * shape_.heads + h_;
    for (int64_t r = 0; r < rows; ++r) {
      DifferentiateSoftmax(log_sum_exp_[item * shape_.queries + i + r],
                           deltas_[g * padded_queries_ + i + r], terms_.Seen(r), width,
                           probabilities_ + r * stride, logit_gradients + r * stride);
    }
    for (int64_t r = 0; r < rows; ++r) {
      Reduce(logit_gradients + r * stride, keys_ + matrix, stride, width, sizes_.features,
             content_sums_);
      if (terms_.relative()) {
        Reduce(logit_gradients + r * stride, terms_.Matrix(r), terms_.stride(), width,
               sizes_.features, position_sums_);
        AddFeatures(content_sums_, sizes_.features, content_bias_sums_);
        AddFeatures(position_sums_, sizes_.features, position_bias_sums_);
      }
      AddAndScale(content_sums_, position_sums_, sizes_.scale, sizes_.features, content_sums_);
      float* gradient = gradients_.queries.Item(p_, b, h_) + (i + r) * gradients_.queries.token;
      CopyFeatures(content_sums_, shape_.head_size, gradient);
      terms_.TurnBack(i + r, gradient);
    }
  }

  // Gradients of u and w from sums over queries, which were scaled. `part` may be null.
  void StoreBias(const float* sums, float* part) const {
    for (int64_t c = 0; part != nullptr && c < shape_.head_size; ++c) {
      part[c] = sizes_.scale * sums[c];
    }
  }

  void StoreRelativeRows(int64_t i, int64_t rows) {
    const int64_t n = shape_.queries, m = shape_.keys;
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      for (int64_t r = 0; r < rows; ++r) {
        const float* from = relative_rows_ + r * sizes_.matrix + c * sizes_.width;
        if (inputs_.terms.toeplitz) {
          float* to = relative_part_ + c * (n + m - 1) + n - 1 - (i + r);
          for (int64_t j = 0; j < m; ++j) to[j] += from[j];
        } else {
          std::copy_n(from, m, relative_part_ + (c * n + i + r) * m);
        }
      }
    }
  }

  const AttentionInputs& inputs_;
  const AttentionShape& shape_;
  const HeadVectors<const float>& output_;
  const HeadVectors<const float>& output_gradient_;
  const float* log_sum_exp_;
  const AttentionGradients& gradients_;
  const SharedGradients& shared_;
  const HeadSizes sizes_;
  Scratch scratch_;
  HeadTerms terms_;
  const int64_t together_;
  // [together, features, width]
  float* keys_;
  float* values_;
  float* key_gradients_;
  float* value_gradients_;
  // n and more, so that blocks of rows are whole.
  const int64_t padded_queries_;
  // [together, padded n, features]: queries as they meet keys and R, the output's gradients;
  // [together, padded n]: the sums of p dp over a row.
  float* contents_;
  float* positions_ = nullptr;
  float* mixed_gradients_;
  float* deltas_;
  // Of a block of rows: probabilities [rows, width], the logits' gradients [group, rows, width].
  float* probabilities_;
  float* logit_gradients_;
  float* content_sums_;
  float* position_sums_;
  // Of a unit's queries.
  float* content_bias_sums_;
  float* position_bias_sums_;
  // The terms' gradients of a block of rows over the unit's sequences: [rows, features, width] and
  // [rows, width].
  float* relative_rows_ = nullptr;
  float* additive_rows_ = nullptr;
  float* relative_part_ = nullptr;
  float* additive_part_ = nullptr;
  int64_t p_ = 0;
  int64_t h_ = 0;
};

void RunBackward(const AttentionInputs& inputs, const HeadVectors<const float>& output,
                 const HeadVectors<const float>& output_gradient, const float* log_sum_exp,
                 const AttentionGradients& gradients, const SharedGradients& shared, int64_t begin,
                 int64_t end) {
  Backward backward(inputs, output, output_gradient, log_sum_exp, gradients, shared);
  for (int64_t unit = begin; unit < end; ++unit) backward.Unit(unit);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lengthwise::kernels {

HWY_EXPORT(RunBackward);

void AttentionBackward(const AttentionInputs& inputs, const HeadVectors<const float>& output,
                       const HeadVectors<const float>& output_gradient, const float* log_sum_exp,
                       const AttentionGradients& gradients, const ParallelFor& parallel_for) {
  const SharedGradients shared(inputs, gradients);
  parallel_for(SharedGradients::Items(inputs) * shared.chunks, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RunBackward)
    (inputs, output, output_gradient, log_sum_exp, gradients, shared, begin, end);
  });
  for (const ChunkedSum* sum :
       {&shared.relative, &shared.additive, &shared.content_bias, &shared.position_bias}) {
    sum->Add(parallel_for);
  }
}

}  // namespace lengthwise::kernels
#endif
