// From the caller's vectors of dh numbers a token to the padded matrices of rows-inl.h and back.
// Padding is 0 when memory is made and nobody writes it.
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
#include "models/kernels/rows-inl.h"
#include "models/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace lengthwise::kernels {
namespace HWY_NAMESPACE {

// Queries whose rows are worked on together.
constexpr int64_t kRows = 8;

// The sizes of one head's matrices.
struct HeadSizes {
  explicit HeadSizes(const AttentionShape& shape)
      : width(PaddedKeys(shape.keys)),
        features(PaddedFeatures(shape.head_size)),
        matrix(width * features),
        scale(1 / std::sqrt(static_cast<float>(shape.head_size))) {}

  int64_t width;
  int64_t features;
  int64_t matrix;
  float scale;
};

#if HWY_TARGET != HWY_SCALAR
// to[c, j] = from[j, c] for four by four numbers.
HWY_INLINE void TransposeFour(const float* from, int64_t from_stride, float* HWY_RESTRICT to,
                              int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
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

// to[c, j] = from[j, c] for `rows` rows of `from` and `columns` columns.
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

// Turns the pairs (x[2c], x[2c + 1]) of a token by the angles whose sines and then cosines are
// `angles`; backwards for direction -1.
HWY_INLINE void Turn(const float* angles, float direction, int64_t head_size, float* x) {
  for (int64_t c = 0; 2 * c < head_size; ++c) {
    const float sine = direction * angles[c], cosine = angles[head_size / 2 + c];
    const float even = x[2 * c], odd = x[2 * c + 1];
    x[2 * c] = even * cosine - odd * sine;
    x[2 * c + 1] = odd * cosine + even * sine;
  }
}

// The same for all tokens of a matrix; `angles` is a matrix, too.
HWY_INLINE void TurnColumns(const float* angles, float direction, int64_t head_size, int64_t width,
                            float* matrix) {
  const Floats d;
  const auto sign = hn::Set(d, direction);
  for (int64_t c = 0; 2 * c < head_size; ++c) {
    const float* sines = angles + c * width;
    const float* cosines = angles + (head_size / 2 + c) * width;
    float* evens = matrix + 2 * c * width;
    float* odds = evens + width;
    for (int64_t j = 0; j < width; j += kLanes) {
      const auto sine = hn::Mul(sign, hn::LoadU(d, sines + j)), cosine = hn::LoadU(d, cosines + j);
      const auto even = hn::LoadU(d, evens + j), odd = hn::LoadU(d, odds + j);
      hn::StoreU(hn::Sub(hn::Mul(even, cosine), hn::Mul(odd, sine)), d, evens + j);
      hn::StoreU(hn::MulAdd(odd, cosine, hn::Mul(even, sine)), d, odds + j);
    }
  }
}

// The terms of one member's head, a block of kRows queries at a time. Loading a block costs little
// where several sequences use it.
class HeadTerms {
 public:
  HeadTerms(const AttentionInputs& inputs, const HeadSizes& sizes, Scratch& scratch)
      : terms_(inputs.terms),
        shape_(inputs.shape),
        sizes_(sizes),
        content_bias_(scratch.Zeros(sizes.features)),
        position_bias_(scratch.Zeros(sizes.features)) {
    if (terms_.rotation != nullptr) angles_ = scratch.Zeros(sizes_.matrix);
    if (terms_.relative == nullptr) return;
    if (terms_.toeplitz) {
      // The last row's last vector ends here.
      stride_ = shape_.queries - 1 + sizes_.width;
      matrices_ = scratch.Zeros(sizes_.features * stride_);
    } else {
      stride_ = sizes_.width;
      matrices_ = scratch.Zeros(kRows * sizes_.matrix);
    }
  }

  void SelectHead(int64_t p, int64_t h) {
    const int64_t head = p * shape_.heads + h;
    if (terms_.additive != nullptr) {
      additive_ =
          terms_.additive + (terms_.additive_shared ? h : head) * shape_.queries * shape_.keys;
    }
    if (terms_.rotation != nullptr) {
      rotation_ = terms_.rotation + p * shape_.keys * shape_.head_size;
      Transpose(rotation_, shape_.head_size, shape_.keys, shape_.head_size, angles_, sizes_.width);
    }
    if (terms_.relative == nullptr) return;
    std::copy_n(terms_.content_bias + head * shape_.head_size, shape_.head_size, content_bias_);
    std::copy_n(terms_.position_bias + head * shape_.head_size, shape_.head_size, position_bias_);
    if (terms_.toeplitz) {
      const int64_t places = shape_.queries + shape_.keys - 1;
      const float* from = terms_.relative + head * shape_.head_size * places;
      for (int64_t c = 0; c < shape_.head_size; ++c) {
        std::copy_n(from + c * places, places, matrices_ + c * stride_);
      }
    } else {
      relative_ = terms_.relative + head * shape_.head_size * shape_.queries * shape_.keys;
    }
  }

  // The queries first .. first + count - 1.
  void SelectRows(int64_t first, int64_t count) {
    first_ = first;
    if (relative_ == nullptr) return;
    for (int64_t c = 0; c < shape_.head_size; ++c) {
      for (int64_t r = 0; r < count; ++r) {
        std::copy_n(relative_ + (c * shape_.queries + first + r) * shape_.keys, shape_.keys,
                    matrices_ + r * sizes_.matrix + c * stride_);
      }
    }
  }

  bool relative() const { return matrices_ != nullptr; }

  // The keys of one sequence as they meet queries, [features, width], and the way back for their
  // gradients.
  void PackKeys(const float* keys, int64_t token_stride, float* matrix) const {
    Transpose(keys, token_stride, shape_.keys, shape_.head_size, matrix, sizes_.width);
    if (rotation_ != nullptr) {
      TurnColumns(angles_, 1, shape_.head_size, sizes_.width, matrix);
    }
  }
  void UnpackKeyGradients(float* matrix, float* keys, int64_t token_stride) const {
    if (rotation_ != nullptr) {
      TurnColumns(angles_, -1, shape_.head_size, sizes_.width, matrix);
    }
    Transpose(matrix, sizes_.width, shape_.head_size, shape_.keys, keys, token_stride);
  }

  // The queries of one sequence as they meet keys, [n, features], and, unless null, as they meet R:
  // turned, biased, scaled.
  void PackQueries(const float* queries, int64_t token_stride, float* HWY_RESTRICT contents,
                   float* HWY_RESTRICT positions) const {
    for (int64_t i = 0; i < shape_.queries; ++i) {
      float* content = contents + i * sizes_.features;
      CopyFeatures(queries + i * token_stride, shape_.head_size, content);
      if (rotation_ != nullptr) Turn(Angles(i), 1, shape_.head_size, content);
      if (positions != nullptr) {
        AddAndScale(content, position_bias_, sizes_.scale, sizes_.features,
                    positions + i * sizes_.features);
      }
      AddAndScale(content, content_bias_, sizes_.scale, sizes_.features, content);
    }
  }
  // From the gradient of a turned query to that of the query.
  void TurnBack(int64_t i, float* gradient) const {
    if (rotation_ != nullptr) Turn(Angles(i), -1, shape_.head_size, gradient);
  }

  // The keys that the r-th of the selected queries sees.
  int64_t Seen(int64_t r) const {
    return terms_.causal ? std::min(shape_.keys, terms_.first_query + first_ + r + 1) : shape_.keys;
  }

  // R of the r-th of the selected queries, [features, width] with `stride`.
  const float* Matrix(int64_t r) const {
    return terms_.toeplitz ? matrices_ + shape_.queries - 1 - (first_ + r)
                           : matrices_ + r * sizes_.matrix;
  }
  int64_t stride() const { return stride_; }

  // A of the r-th of the selected queries, [m]; null where there is none.
  const float* Additive(int64_t r) const {
    return additive_ == nullptr ? nullptr : additive_ + (first_ + r) * shape_.keys;
  }

 private:
  const float* Angles(int64_t i) const { return rotation_ + i * shape_.head_size; }

  const AttentionTerms& terms_;
  const AttentionShape& shape_;
  const HeadSizes& sizes_;
  // [features]; zeros where there is no R.
  float* content_bias_;
  float* position_bias_;
  int64_t stride_ = 0;
  int64_t first_ = 0;
  // One matrix for Toeplitz, otherwise one for each selected row.
  float* matrices_ = nullptr;
  // The tokens' angles as a matrix.
  float* angles_ = nullptr;
  const float* rotation_ = nullptr;
  const float* relative_ = nullptr;
  const float* additive_ = nullptr;
};

// The logits of the r-th of the selected queries for the first `keys` keys, `width` with padding:
// `content` and `position` are the packed query.
HWY_INLINE void Logits(const HeadTerms& terms, const HeadSizes& sizes, int64_t keys, int64_t width,
                       int64_t r, const float* content, const float* position,
                       const float* key_matrix, float* row) {
  Product</*kAdd=*/false>(content, sizes.features, key_matrix, sizes.width, width, row);
  if (terms.relative()) {
    Product</*kAdd=*/true>(position, sizes.features, terms.Matrix(r), terms.stride(), width, row);
  }
  if (const float* additive = terms.Additive(r); additive != nullptr) {
    AddRow(additive, keys, row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lengthwise::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
