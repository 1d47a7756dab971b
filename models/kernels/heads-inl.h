// Converts between the caller's tokens, vectors of dh numbers, and the padded rows and panels of
// panels-inl.h. Padding is zeroed on allocation and stays zero.
#if defined(LENGTHWISE_MODELS_KERNELS_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LENGTHWISE_MODELS_KERNELS_HEADS_INL_H_
#undef LENGTHWISE_MODELS_KERNELS_HEADS_INL_H_
#else
#define LENGTHWISE_MODELS_KERNELS_HEADS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "models/kernels/attention.h"
#include "models/kernels/panels-inl.h"
#include "models/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {

// Padded sizes of one head, in tokens, features and floats.
struct HeadSizes {
  explicit HeadSizes(const AttentionShape& shape)
      : queries(RoundUp(shape.queries, kLanes)),
        keys(RoundUp(shape.keys, kEight)),
        features(RoundUp(shape.head_size, kEight)),
        query_rows(queries * features),
        key_rows(keys * features),
        panel(features * kLanes),
        scale(1 / std::sqrt(static_cast<float>(shape.head_size))) {}

  // Padded counts.
  int64_t queries;
  int64_t keys;
  int64_t features;
  // Floats in all rows or panels of a sequence (query_rows, key_rows), and in one panel.
  int64_t query_rows;
  int64_t key_rows;
  int64_t panel;
  float scale;
};

#if HWY_TARGET != HWY_SCALAR
// Transposes 4 x 4 numbers: to[c, j] = from[j, c].
HWY_INLINE void TransposeFour(const float* from, int64_t from_stride, float* HWY_RESTRICT to,
                              int64_t to_stride) {
  const Four d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low01 = hn::InterleaveLower(d, r0, r1), low23 = hn::InterleaveLower(d, r2, r3);
  const auto high01 = hn::InterleaveUpper(d, r0, r1), high23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, to + to_stride);
  hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, to + 2 * to_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, to + 3 * to_stride);
}
#endif

// Transposes: to[c, j] = from[j, c] for `rows` rows and `columns` columns of `from`.
inline HWY_NOINLINE void Transpose(const float* from, int64_t from_stride, int64_t rows,
                                   int64_t columns, float* HWY_RESTRICT to, int64_t to_stride) {
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + 4 <= rows; j += 4) {
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      TransposeFour(from + j * from_stride + c, from_stride, to + c * to_stride + j, to_stride);
    }
    for (; c < columns; ++c) {
      for (int64_t i = j; i < j + 4; ++i) to[c * to_stride + i] = from[i * from_stride + c];
    }
  }
#endif
  for (; j < rows; ++j) {
    for (int64_t c = 0; c < columns; ++c) to[c * to_stride + j] = from[j * from_stride + c];
  }
}

// Masked logit: its probability underflows to 0. Finite, so that differences of masked logits are
// not NaN.
constexpr float kMasked = -1e30F;

// Rotates a token in place: each feature times its cosine, plus the other feature of its pair (2c,
// 2c + 1) times its sine. Direction -1 rotates back.
HWY_INLINE void Turn(const float* cosines, const float* sines, float direction, int64_t features,
                     float* x) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t c = 0; c < features; c += 2) {
    const float even = x[c], odd = x[c + 1];
    x[c] = even * cosines[c] + direction * sines[c] * odd;
    x[c + 1] = odd * cosines[c + 1] + direction * sines[c + 1] * even;
  }
#else
  const Four d;
  const auto sign = hn::Set(d, direction);
  for (int64_t c = 0; c < features; c += 4) {
    const auto number = hn::LoadU(d, x + c);
    const auto turned = hn::Mul(hn::Mul(sign, hn::LoadU(d, sines + c)), hn::Shuffle2301(number));
    hn::StoreU(hn::MulAdd(number, hn::LoadU(d, cosines + c), turned), d, x + c);
  }
#endif
}

// Copies `count` tokens into rows.
HWY_INLINE void CopyRows(const float* from, int64_t token_stride, int64_t count, int64_t head_size,
                         int64_t features, float* rows) {
  for (int64_t i = 0; i < count; ++i) {
    CopyFeatures(from + i * token_stride, head_size, rows + i * features);
  }
}

// Copies `count` tokens into octets.
inline void MakeOctets(const float* from, int64_t token_stride, int64_t count, int64_t head_size,
                       int64_t features, float* octets) {
  for (int64_t j = 0; j < count; j += kEight) {
    Transpose(from + j * token_stride, token_stride, std::min(kEight, count - j), head_size,
              octets + j * features, kEight);
  }
}

// Copies `count` tokens into panels, [panels, features, kLanes].
inline void MakePanels(const float* from, int64_t token_stride, int64_t count, int64_t head_size,
                       int64_t features, float* panels) {
  for (int64_t i = 0; i < count; i += kLanes) {
    float* panel = panels + i * features;
    if (count - i < kLanes) std::fill_n(panel, features * kLanes, 0.0F);
    Transpose(from + i * token_stride, token_stride, std::min(kLanes, count - i), head_size, panel,
              kLanes);
  }
}

// Makes pairs of rows, with `bias` added. If `count` is odd, zeroes the row after the last.
HWY_INLINE void MakePairs(float* rows, int64_t count, const float* bias, int64_t features,
                          float* pairs) {
  if (count % kPair > 0) std::fill_n(rows + count * features, features, 0.0F);
  for (int64_t i = 0; i < count; i += kPair) {
    MakePair(rows + i * features, bias, features, pairs + i * features);
  }
}

// Attention terms of one member's head, prepared for one panel of queries at a time. Callers share
// the cost of SelectPanel by running several sequences per panel.
class HeadTerms {
 public:
  HeadTerms(const AttentionInputs& inputs, const HeadSizes& sizes, Scratch& scratch)
      : terms_(inputs.terms),
        shape_(inputs.shape),
        sizes_(sizes),
        content_bias_(scratch.Zeros(sizes.features)),
        position_bias_(scratch.Zeros(sizes.features)),
        seen_(scratch.Zeros(kLanes)) {
    if (terms_.rotation != nullptr) {
      cosines_ = scratch.Zeros(sizes.key_rows);
      sines_ = scratch.Zeros(sizes.key_rows);
    }
    if (terms_.additive != nullptr) additive_ = scratch.Zeros(sizes.queries * sizes.keys);
    if (terms_.relative == nullptr) return;
    feature_stride_ = terms_.toeplitz ? sizes.queries + sizes.keys : sizes.keys * kLanes;
    relative_ = scratch.Zeros(sizes.features * feature_stride_);
  }

  void SelectHead(int64_t p, int64_t h) {
    const int64_t head = p * shape_.heads + h, n = shape_.queries, m = shape_.keys;
    if (terms_.additive != nullptr) {
      const float* additive = terms_.additive + (terms_.additive_shared ? h : head) * n * m;
      for (int64_t i = 0; i < n; i += kLanes) {
        Transpose(additive + i * m, m, std::min(kLanes, n - i), m, additive_ + i * sizes_.keys,
                  kLanes);
      }
    }
    if (terms_.rotation != nullptr && p != turned_member_) SelectRotation(p);
    if (terms_.relative == nullptr) return;
    const int64_t bias_stride =
        terms_.bias_stride == 0 ? shape_.heads * shape_.head_size : terms_.bias_stride;
    const int64_t bias = p * bias_stride + h * shape_.head_size;
    std::copy_n(terms_.content_bias + bias, shape_.head_size, content_bias_);
    std::copy_n(terms_.position_bias + bias, shape_.head_size, position_bias_);
    const int64_t places = terms_.toeplitz ? n + m - 1 : n * m;
    head_relative_ = terms_.relative + head * shape_.head_size * places;
    if (!terms_.toeplitz) return;
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      std::reverse_copy(head_relative_ + c * places, head_relative_ + (c + 1) * places,
                        relative_ + c * feature_stride_ + sizes_.keys - m);
    }
  }

  // Selects the panel of queries first .. first + count - 1; first is a multiple of kLanes.
  void SelectPanel(int64_t first, int64_t count) {
    first_ = first;
    for (int64_t i = 0; i < kLanes; ++i) seen_[i] = static_cast<float>(Seen(first + i));
    if (!per_panel()) return;
    const int64_t n = shape_.queries, m = shape_.keys;
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      Transpose(head_relative_ + (c * n + first) * m, m, count, m, relative_ + c * feature_stride_,
                kLanes);
    }
  }

  // True if SelectPanel is expensive enough that sequences should share it.
  bool per_panel() const { return relative_ != nullptr && !terms_.toeplitz; }
  bool relative() const { return relative_ != nullptr; }

  // CopyAndTurn copies one sequence's queries or keys into rows and rotates them. TurnBack undoes
  // the rotation, for the gradients of tokens from `first` on.
  void CopyAndTurn(const float* tokens, int64_t token_stride, int64_t count, float* rows) const {
    CopyRows(tokens, token_stride, count, shape_.head_size, sizes_.features, rows);
    if (sines_ != nullptr) TurnRows(0, 1, count, rows);
  }
  void TurnBack(int64_t first, int64_t count, float* rows) const {
    if (sines_ != nullptr) TurnRows(first, -1, count, rows);
  }

  // Makes query panels from rows, biased and scaled: `contents` for the products with keys and,
  // unless null, `positions` for those with R.
  void MakeQueryPanels(const float* rows, float* contents, float* positions) const {
    MakePanels(rows, sizes_.features, shape_.queries, sizes_.features, sizes_.features, contents);
    if (positions != nullptr) AddAndScale(contents, position_bias_, positions);
    AddAndScale(contents, content_bias_, contents);
  }
  const float* content_bias() const { return content_bias_; }

  // Number of keys that query i sees.
  int64_t Seen(int64_t i) const {
    return terms_.causal ? std::min(shape_.keys, terms_.first_query + i + 1) : shape_.keys;
  }

  // R of the selected panel and key j. Feature c is the vector at Relative(j) + c feature_stride();
  // the next key's is at Relative(j) + key_stride().
  const float* Relative(int64_t j) const { return relative_ + RelativePlace(j); }
  // Offset of key j in an array of Relative's layout.
  int64_t RelativePlace(int64_t j) const {
    return terms_.toeplitz ? first_ - j + sizes_.keys - 1 : j * kLanes;
  }
  int64_t feature_stride() const { return feature_stride_; }
  int64_t key_stride() const { return terms_.toeplitz ? -1 : kLanes; }

  // Logits of the selected panel for keys j .. j + 7. `panel` holds the packed queries, `positions`
  // those for R. Logits of keys that a query does not see are kMasked.
  HWY_INLINE Eight Logits(const float* panel, const float* positions, const float* key_octets,
                          int64_t j) const {
    Eight logits = Scores(panel, shape_.head_size, key_octets + j * sizes_.features);
    if (relative_ != nullptr) {
      logits = terms_.toeplitz ? AddVectorProducts(shape_.head_size, positions, kLanes, Relative(j),
                                                   feature_stride_, -1, logits)
                               : AddVectorProducts(shape_.head_size, positions, kLanes, Relative(j),
                                                   feature_stride_, kLanes, logits);
    }
    if (additive_ != nullptr) {
      const Floats d;
      const float* additive = additive_ + first_ * sizes_.keys + j * kLanes;
      logits = Apply([&](FloatVector logit,
                         int64_t t) { return hn::Add(logit, hn::LoadU(d, additive + t * kLanes)); },
                     logits);
    }
    return j + kEight > Seen(first_) ? Masked(j, logits) : logits;
  }

 private:
  void SelectRotation(int64_t p) {
    const int64_t pairs = shape_.head_size / 2;
    for (int64_t j = 0; j < shape_.keys; ++j) {
      const float* angles = terms_.rotation + (p * shape_.keys + j) * shape_.head_size;
      for (int64_t c = 0; c < pairs; ++c) {
        const int64_t feature = j * sizes_.features + 2 * c;
        sines_[feature] = -angles[c];
        sines_[feature + 1] = angles[c];
        cosines_[feature] = cosines_[feature + 1] = angles[pairs + c];
      }
    }
    turned_member_ = p;
  }

  HWY_INLINE void TurnRows(int64_t first, float direction, int64_t count, float* rows) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t angle = (first + i) * sizes_.features;
      Turn(cosines_ + angle, sines_ + angle, direction, sizes_.features,
           rows + i * sizes_.features);
    }
  }

  // to = scale (panels + bias), for all panels of a sequence.
  HWY_INLINE void AddAndScale(const float* panels, const float* bias, float* to) const {
    const Floats d;
    const auto scale = hn::Set(d, sizes_.scale);
    for (int64_t panel = 0; panel < sizes_.query_rows; panel += sizes_.panel) {
      for (int64_t c = 0; c < sizes_.features; ++c) {
        const int64_t place = panel + c * kLanes;
        hn::StoreU(hn::Mul(scale, hn::Add(hn::LoadU(d, panels + place), hn::Set(d, bias[c]))), d,
                   to + place);
      }
    }
  }

  HWY_INLINE Eight Masked(int64_t j, const Eight& logits) const {
    const Floats d;
    const auto seen = hn::LoadU(d, seen_), masked = hn::Set(d, kMasked);
    return Apply(
        [&](FloatVector logit, int64_t t) {
          return hn::IfThenElse(hn::Lt(hn::Set(d, static_cast<float>(j + t)), seen), logit, masked);
        },
        logits);
  }

  const AttentionTerms& terms_;
  const AttentionShape& shape_;
  const HeadSizes& sizes_;
  // [features]; zeros without R.
  float* content_bias_;
  float* position_bias_;
  int64_t first_ = 0;
  // Keys seen by each query of the selected panel; float, to be compared in vectors.
  float* seen_;
  // The head's A, [panels, keys, kLanes].
  float* additive_ = nullptr;
  // R of the selected panel, [features, keys, kLanes]. If Toeplitz, R of the whole head, [features,
  // queries + keys], with key j and query i at i - j + keys - 1, so that adjacent queries form a
  // vector.
  float* relative_ = nullptr;
  int64_t feature_stride_ = 0;
  // Member whose angles are loaded. cosines_ and sines_ are [keys, features]; the sine of a pair's
  // first feature is negated.
  int64_t turned_member_ = -1;
  float* cosines_ = nullptr;
  float* sines_ = nullptr;
  const float* head_relative_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
