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
#include "models/kernels/panels-inl.h"

#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_ONCE_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_ONCE_
namespace lengthwise::kernels {

// Sequences whose parts of the terms' gradients are summed together.
constexpr int64_t kGroup = 8;
// Sequences of one unit of work, which is these of one head; few stay in the second cache until all
// heads were there. An R of every pair costs more to bring into form than they do, and its gradient
// so much memory that parts of it are few.
constexpr int64_t kChunk = 8;
constexpr int64_t kChunkOfPairs = 128;
constexpr int64_t kPairsTogether = 32;
constexpr int64_t kMaxPartBytes = int64_t{64} << 20;

// A sum over the sequences of a batch: first a part for each chunk of sequences, [chunks, P, H,
// size], then the parts in chunk order. The fixed order makes the result independent of the
// threads. With one chunk the part is the sum.
class ChunkedSum {
 public:
  ChunkedSum(float* sum, int64_t chunks, int64_t items, int64_t size)
      : sum_(sum), chunks_(chunks), items_(items), size_(size) {
    if (sum != nullptr && chunks > 1) {
      parts_ = hwy::AllocateAligned<float>(static_cast<size_t>(chunks * items * size));
    }
  }

  // Destination of a chunk's part for the item (a member's head). Null if the sum is not wanted.
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
    const AttentionTerms& terms = inputs.terms;
    if (terms.relative == nullptr && terms.additive == nullptr) return 4;
    int64_t size = 0;
    if (gradients.relative != nullptr) size += RelativeSize(inputs);
    if (gradients.additive != nullptr) size += shape.queries * shape.keys;
    const int64_t bytes = shape.heads * size * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(1, kMaxPartBytes / std::max<int64_t>(1, bytes));
    const int64_t even = (shape.sequences + most - 1) / most;
    const bool pairs = terms.relative != nullptr && !terms.toeplitz;
    return std::max(pairs ? kChunkOfPairs : kChunk, (even + kGroup - 1) / kGroup * kGroup);
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

static_assert(kGroup == kEight, "SumOfProducts takes eight sequences");

// The log-sum-exp of padding queries, which gives them a probability of 0.
constexpr float kNever = 1e30F;

// The gradients of one member's head over a chunk of sequences, a unit of work. The forward pass
// kept nothing of size [n, m]; a panel's probabilities are computed again, eight keys at a time:
//
//   p_ij = exp(logits_ij - log_sum_exp_i)
//   dlogits_ij = p_ij (dO_i . v_j - delta_i),  delta_i = sum_j p_ij dO_i . v_j = dO_i . O_i
//
// The second form of delta is why one pass over the keys is enough. What must stay true:
//
// 1. A unit writes the gradients of its own sequences' head, and its own parts of the sums that
//    sequences share (ChunkedSum::Part). So units run on any threads in any order without locks.
// 2. The order of additions depends on one member's shape alone. Chunks do not depend on threads or
//    on P; within a unit panels, groups of sequences and keys ascend; the parts are added in the
//    order of the chunks, once all units have ended. Otherwise results would depend on threads, and
//    a pack would not be its members bit for bit.
// 3. Padding adds exactly 0. Keys that are not there or not seen have logits of kMasked, queries
//    that are not there a log-sum-exp of kNever: their p is 0, and so is dlogits. The sequences
//    that a last group lacks have dlogits of 0 (Panels) and positions of 0 (Sequences), because
//    AddRelative and AddAdditive always read a whole group.
// 4. Sums over the sequences of a unit start at 0 in Unit; sums of R of every pair, which have one
//    panel's size, start at 0 for each panel, and StoreRelative adds them to the unit's part.
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
        sums_(gradients.relative != nullptr || gradients.additive != nullptr),
        group_(sums_ ? kGroup : 1),
        // As few as there must be stay in the nearest caches.
        together_(terms_.per_panel() ? kPairsTogether : group_),
        key_rows_(scratch_.Zeros(together_ * sizes_.key_rows)),
        keys_(scratch_.Zeros(together_ * sizes_.key_rows)),
        values_(scratch_.Zeros(together_ * sizes_.key_rows)),
        key_sums_(scratch_.Zeros(kPair * together_ * sizes_.key_rows)),
        value_sums_(scratch_.Zeros(kPair * together_ * sizes_.key_rows)),
        contents_(scratch_.Zeros(together_ * sizes_.query_rows)),
        content_pairs_(scratch_.Zeros(together_ * sizes_.query_rows)),
        mixed_gradients_(scratch_.Zeros(together_ * sizes_.query_rows)),
        mixed_gradient_pairs_(scratch_.Zeros(together_ * sizes_.query_rows)),
        rows_(scratch_.Zeros(std::max(sizes_.query_rows, sizes_.key_rows))),
        zeros_(scratch_.Zeros(sizes_.features)),
        deltas_(scratch_.Zeros(together_ * sizes_.queries)),
        log_sum_exps_(scratch_.Zeros(together_ * sizes_.queries)),
        probabilities_(scratch_.Zeros(kEight * kLanes)),
        logit_gradients_(scratch_.Zeros(kGroup * kEight * kLanes)),
        content_gradients_(scratch_.Zeros(group_ * sizes_.panel)),
        position_gradients_(scratch_.Zeros(group_ * sizes_.panel)),
        content_bias_sums_(scratch_.Zeros(sizes_.panel)),
        position_bias_sums_(scratch_.Zeros(sizes_.panel)) {
    // The last group may be smaller than kGroup, but all of its panels are read.
    if (terms_.relative()) positions_ = scratch_.Zeros((together_ + kGroup) * sizes_.query_rows);
    if (gradients.relative != nullptr) {
      relative_sums_count_ = inputs.terms.toeplitz ? sizes_.features * terms_.feature_stride()
                                                   : sizes_.key_rows * kLanes;
      relative_sums_ = scratch_.Zeros(relative_sums_count_);
      relative_rows_ = scratch_.Zeros(kLanes * shape_.keys);
    }
    if (gradients.additive != nullptr) {
      additive_sums_ = scratch_.Zeros(sizes_.queries * sizes_.keys);
    }
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
    std::fill_n(relative_sums_, relative_sums_count_, 0.0F);
    if (additive_sums_ != nullptr) {
      std::fill_n(additive_sums_, sizes_.queries * sizes_.keys, 0.0F);
    }
    std::fill_n(content_bias_sums_, sizes_.panel, 0.0F);
    std::fill_n(position_bias_sums_, sizes_.panel, 0.0F);
    const int64_t first = chunk * shared_.chunk;
    const int64_t last = std::min(first + shared_.chunk, shape_.sequences);
    for (int64_t b = first; b < last; b += together_) Sequences(b, std::min(together_, last - b));
    if (relative_sums_ != nullptr && inputs_.terms.toeplitz) StoreDiagonals();
    if (additive_sums_ != nullptr) StoreAdditive();
    StoreBias(content_bias_sums_, shared_.content_bias.Part(chunk, item));
    StoreBias(position_bias_sums_, shared_.position_bias.Part(chunk, item));
  }

 private:
  void Sequences(int64_t first, int64_t count) {
    for (int64_t g = 0; g < count; ++g) Pack(first + g, g);
    if (positions_ != nullptr && count % group_ > 0) {
      std::fill_n(positions_ + count * sizes_.query_rows, kGroup * sizes_.query_rows, 0.0F);
    }
    std::fill_n(key_sums_, kPair * count * sizes_.key_rows, 0.0F);
    std::fill_n(value_sums_, kPair * count * sizes_.key_rows, 0.0F);
    for (int64_t i = 0; i < shape_.queries; i += kLanes) {
      const int64_t queries = std::min(kLanes, shape_.queries - i);
      terms_.SelectPanel(i, queries);
      if (terms_.per_panel()) std::fill_n(relative_sums_, relative_sums_count_, 0.0F);
      for (int64_t g = 0; g < count; g += group_) {
        Panels(first + g, g, std::min(group_, count - g), i, queries);
      }
      if (relative_sums_ != nullptr && terms_.per_panel()) {
        StoreRelative(i, queries, /*add=*/first % shared_.chunk > 0);
      }
    }
    for (int64_t g = 0; g < count; ++g) StoreKeyGradients(first + g, g);
  }

  // Brings sequence b, the g-th of those together, into the forms that panels are made from. All at
  // once, because its memory is far apart for one head and must be waited for.
  void Pack(int64_t b, int64_t g) {
    const int64_t features = sizes_.features, head_size = shape_.head_size;
    const int64_t queries = g * sizes_.query_rows, keys = g * sizes_.key_rows;
    terms_.CopyAndTurn(inputs_.keys.Item(p_, b, h_), inputs_.keys.token, shape_.keys,
                       key_rows_ + keys);
    MakeOctets(key_rows_ + keys, features, shape_.keys, features, features, keys_ + keys);
    MakeOctets(inputs_.values.Item(p_, b, h_), inputs_.values.token, shape_.keys, head_size,
               features, values_ + keys);

    terms_.CopyAndTurn(inputs_.queries.Item(p_, b, h_), inputs_.queries.token, shape_.queries,
                       rows_);
    terms_.MakeQueryPanels(rows_, contents_ + queries,
                           positions_ == nullptr ? nullptr : positions_ + queries);
    MakePairs(rows_, shape_.queries, terms_.content_bias(), features, content_pairs_ + queries);

    CopyRows(output_gradient_.Item(p_, b, h_), output_gradient_.token, shape_.queries, head_size,
             features, rows_);
    MakePanels(rows_, features, shape_.queries, features, features, mixed_gradients_ + queries);
    MakePairs(rows_, shape_.queries, zeros_, features, mixed_gradient_pairs_ + queries);
    const float* outputs = output_.Item(p_, b, h_);
    const int64_t item = (p_ * shape_.sequences + b) * shape_.heads + h_;
    for (int64_t i = 0; i < shape_.queries; ++i) {
      deltas_[g * sizes_.queries + i] =
          Dot(rows_ + i * features, outputs + i * output_.token, head_size);
      log_sum_exps_[g * sizes_.queries + i] = log_sum_exp_[item * shape_.queries + i];
    }
    std::fill_n(log_sum_exps_ + g * sizes_.queries + shape_.queries,
                sizes_.queries - shape_.queries, kNever);
  }

  void StoreKeyGradients(int64_t b, int64_t g) {
    const int64_t features = sizes_.features, sums = kPair * g * sizes_.key_rows;
    const auto store = [&](const HeadVectors<float>& to) {
      float* vectors = to.Item(p_, b, h_);
      for (int64_t j = 0; j < shape_.keys; ++j) {
        CopyFeatures(rows_ + j * features, shape_.head_size, vectors + j * to.token);
      }
    };
    for (int64_t j = 0; j < shape_.keys; ++j) {
      AddPair(key_sums_ + sums + kPair * j * features, sizes_.scale, features,
              rows_ + j * features);
    }
    terms_.TurnBack(0, shape_.keys, rows_);
    store(gradients_.keys);
    for (int64_t j = 0; j < shape_.keys; ++j) {
      AddPair(value_sums_ + sums + kPair * j * features, 1, features, rows_ + j * features);
    }
    store(gradients_.values);
  }

  // The selected panels, `queries` queries from i on, of the sequences b .. b + count - 1, the
  // first of which is the first-th of those together. Eight keys of all of them before the next,
  // for the sums over sequences.
  void Panels(int64_t b, int64_t first, int64_t count, int64_t i, int64_t queries) {
    std::fill_n(content_gradients_, count * sizes_.panel, 0.0F);
    std::fill_n(position_gradients_, count * sizes_.panel, 0.0F);
    if (sums_ && count < kGroup) {
      std::fill_n(logit_gradients_ + count * kEight * kLanes, (kGroup - count) * kEight * kLanes,
                  0.0F);
    }
    // The last query sees at least as many keys as the others.
    const int64_t keys = terms_.Seen(i + queries - 1);
    for (int64_t j = 0; j < keys; j += kEight) {
      for (int64_t g = 0; g < count; ++g) Keys(g, first + g, i, queries, j);
      if (relative_sums_ != nullptr) AddRelative(first, i, j);
      if (additive_sums_ != nullptr) AddAdditive(i, j);
    }
    for (int64_t g = 0; g < count; ++g) StoreQueryGradients(b + g, g, i, queries);
  }

  // The keys j .. j + 7 for the selected panel of the g-th of the group, the s-th of those
  // together.
  HWY_INLINE void Keys(int64_t g, int64_t s, int64_t i, int64_t queries, int64_t j) {
    const Floats d;
    const int64_t features = sizes_.features;
    const int64_t panel = s * sizes_.query_rows + i * features;
    const int64_t rows = s * sizes_.key_rows + j * features;
    float* logit_gradients = logit_gradients_ + g * kEight * kLanes;

    const auto log_sum_exp = hn::LoadU(d, log_sum_exps_ + s * sizes_.queries + i);
    const Eight p =
        Apply([&](FloatVector logit, int64_t) { return Exp(hn::Sub(logit, log_sum_exp)); },
              terms_.Logits(contents_ + panel, terms_.relative() ? positions_ + panel : nullptr,
                            keys_ + s * sizes_.key_rows, j));
    StoreEight(p, kLanes, probabilities_);
    const auto delta = hn::LoadU(d, deltas_ + s * sizes_.queries + i);
    const Eight gradients = Apply(
        [&](FloatVector product, int64_t t) {
          return hn::Mul(hn::LoadU(d, probabilities_ + t * kLanes), hn::Sub(product, delta));
        },
        Scores(mixed_gradients_ + panel, shape_.head_size, values_ + rows));
    StoreEight(gradients, kLanes, logit_gradients);

    AddMixed(logit_gradients, key_rows_ + rows, kEight, features,
             content_gradients_ + g * sizes_.panel);
    if (terms_.relative()) {
      float* position_gradients = position_gradients_ + g * sizes_.panel;
      for (int64_t c = 0; c < features; c += kEight) {
        const Eight sums = LoadEight(position_gradients + c * kLanes, kLanes);
        StoreEight(AddVectorProducts(kEight, logit_gradients, kLanes,
                                     terms_.Relative(j) + c * terms_.feature_stride(),
                                     terms_.key_stride(), terms_.feature_stride(), sums),
                   kLanes, position_gradients + c * kLanes);
      }
    }
    AddOuterProducts(logit_gradients, content_pairs_ + panel, queries, features,
                     key_sums_ + kPair * rows);
    AddOuterProducts(probabilities_, mixed_gradient_pairs_ + panel, queries, features,
                     value_sums_ + kPair * rows);
  }

  // dR of the selected panel and the keys j .. j + 7, over the group, whose first sequence is the
  // first-th of those together.
  void AddRelative(int64_t first, int64_t i, int64_t j) {
    const float* positions = positions_ + first * sizes_.query_rows + i * sizes_.features;
    for (int64_t t = 0; t < kEight; ++t) {
      const Eight gradients = LoadEight(logit_gradients_ + t * kLanes, kEight * kLanes);
      float* sums = relative_sums_ + terms_.RelativePlace(j + t);
      for (int64_t c = 0; c < shape_.head_size; ++c) {
        AddTo(SumOfProducts(gradients, positions + c * kLanes, sizes_.query_rows),
              sums + c * terms_.feature_stride());
      }
    }
  }

  // The same for dA.
  void AddAdditive(int64_t i, int64_t j) {
    for (int64_t t = 0; t < kEight; ++t) {
      AddTo(Sum(LoadEight(logit_gradients_ + t * kLanes, kEight * kLanes)),
            additive_sums_ + i * sizes_.keys + (j + t) * kLanes);
    }
  }

  void StoreQueryGradients(int64_t b, int64_t g, int64_t i, int64_t queries) {
    const Floats d;
    const auto scale = hn::Set(d, sizes_.scale);
    float* contents = content_gradients_ + g * sizes_.panel;
    const float* positions = position_gradients_ + g * sizes_.panel;
    for (int64_t c = 0; c < sizes_.panel; c += kLanes) {
      auto sum = hn::LoadU(d, contents + c);
      if (terms_.relative()) {
        const auto position = hn::LoadU(d, positions + c);
        AddTo(sum, content_bias_sums_ + c);
        AddTo(position, position_bias_sums_ + c);
        sum = hn::Add(sum, position);
      }
      hn::StoreU(hn::Mul(scale, sum), d, contents + c);
    }
    Transpose(contents, kLanes, sizes_.features, queries, rows_, sizes_.features);
    terms_.TurnBack(i, queries, rows_);
    float* gradients = gradients_.queries.Item(p_, b, h_) + i * gradients_.queries.token;
    for (int64_t r = 0; r < queries; ++r) {
      CopyFeatures(rows_ + r * sizes_.features, shape_.head_size,
                   gradients + r * gradients_.queries.token);
    }
  }

  // Gradients of u and w from sums over queries, which were scaled. `part` may be null.
  void StoreBias(const float* sums, float* part) const {
    const Floats d;
    for (int64_t c = 0; part != nullptr && c < shape_.head_size; ++c) {
      part[c] = sizes_.scale * hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sums + c * kLanes)));
    }
  }

  // Copies sums to the unit's part of dR, for the selected panel or for all queries.
  void StoreRelative(int64_t i, int64_t queries, bool add) {
    const int64_t n = shape_.queries, m = shape_.keys;
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      const float* sums = relative_sums_ + c * terms_.feature_stride();
      float* part = relative_part_ + (c * n + i) * m;
      Transpose(sums, kLanes, m, queries, add ? relative_rows_ : part, m);
      if (add) AddNumbers(relative_rows_, queries * m, part);
    }
  }
  void StoreDiagonals() {
    const int64_t places = shape_.queries + shape_.keys - 1;
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      const float* from = relative_sums_ + c * terms_.feature_stride() + sizes_.keys - shape_.keys;
      std::reverse_copy(from, from + places, relative_part_ + c * places);
    }
  }

  // The same for dA.
  void StoreAdditive() {
    const int64_t n = shape_.queries, m = shape_.keys;
    for (int64_t i = 0; i < n; i += kLanes) {
      Transpose(additive_sums_ + i * sizes_.keys, kLanes, m, std::min(kLanes, n - i),
                additive_part_ + i * m, m);
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
  // True if a term's gradient is summed over the sequences, one group at a time.
  const bool sums_;
  const int64_t group_;
  const int64_t together_;
  // Buffers for `together_` sequences: rows, octets, and the sums of AddOuterProducts.
  float* key_rows_;
  float* keys_;
  float* values_;
  float* key_sums_;
  float* value_sums_;
  // Queries as they meet keys, panels; biased, but not scaled, pairs. The output's gradients, both.
  // Queries as they meet R, panels.
  float* contents_;
  float* content_pairs_;
  float* mixed_gradients_;
  float* mixed_gradient_pairs_;
  float* positions_ = nullptr;
  // One sequence in transit from or to the caller's memory.
  float* rows_;
  const float* zeros_;
  // [together, queries]: the sums of p dp over the keys, and the logits' log-sum-exp.
  float* deltas_;
  float* log_sum_exps_;
  // For eight keys: probabilities [8, lanes] and the logits' gradients [group, 8, lanes].
  float* probabilities_;
  float* logit_gradients_;
  // Gradients of the queries of a group's panels, [group, features, lanes], unscaled.
  float* content_gradients_;
  float* position_gradients_;
  // Sums over a unit's queries, [features, lanes].
  float* content_bias_sums_;
  float* position_bias_sums_;
  // The terms' gradients over the unit's sequences, but those of R of every pair over the sequences
  // together: of R in the form of HeadTerms::Relative, and a panel's as it lies in memory; of A
  // [panels, keys, lanes].
  int64_t relative_sums_count_ = 0;
  float* relative_sums_ = nullptr;
  float* relative_rows_ = nullptr;
  float* additive_sums_ = nullptr;
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
