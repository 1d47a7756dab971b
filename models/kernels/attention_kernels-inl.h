// Shared parts of the kernels in attention_cuda.cu: staging tiles in shared memory, and computing
// the logits of a token with kStep others. All threads of a block must call each function together.
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_KERNELS_INL_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_KERNELS_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/attention_cuda.h"
#include "models/kernels/attention_tiles.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels {

LENGTHWISE_DEVICE int Smaller(int64_t a, int64_t b) { return static_cast<int>(a < b ? a : b); }

// Items of an [outer, size] array that a thread takes: from `first` on, `step` apart. Divides once
// instead of for every item.
class Walk {
 public:
  LENGTHWISE_DEVICE Walk(int first, int step, int size)
      : inner(first % size),
        outer(first / size),
        size_(size),
        inner_step_(step % size),
        outer_step_(step / size) {}

  LENGTHWISE_DEVICE void Next() {
    inner += inner_step_;
    outer += outer_step_;
    if (inner < size_) return;
    inner -= size_;
    ++outer;
  }

  int inner, outer;

 private:
  int size_, inner_step_, outer_step_;
};

LENGTHWISE_DEVICE Walk WalkOfThread(int size) {
  return Walk(simt::Thread(), simt::Threads(), size);
}

// Vectors of one head, for consecutive sequences, with the rotation and the bias that are applied
// before products.
template <typename T>
struct HeadSource {
  const T* data = nullptr;
  int64_t sequence = 0;
  int64_t token = 0;
  int head_size = 0;
  const float* rotation = nullptr;  // [tokens, head_size] of the member, or null
  const float* bias = nullptr;      // [head_size] or null
  float scale = 1;
};

// Index of a head's u and w.
LENGTHWISE_DEVICE int64_t BiasOf(const AttentionShape& shape, const AttentionTerms& terms,
                                 int64_t p, int64_t h) {
  const int64_t stride = terms.bias_stride == 0 ? shape.heads * shape.head_size : terms.bias_stride;
  return p * stride + h * shape.head_size;
}

template <typename T>
LENGTHWISE_DEVICE HeadSource<T> SourceOf(const AttentionShape& shape,
                                         const HeadVectors<const T>& from, int64_t p, int64_t h,
                                         int64_t b, const float* rotation) {
  const float* angles = rotation == nullptr ? nullptr : rotation + p * shape.keys * shape.head_size;
  return {.data = from.data + p * from.member + h * from.head + b * from.sequence,
          .sequence = from.sequence,
          .token = from.token,
          .head_size = static_cast<int>(shape.head_size),
          .rotation = angles};
}

// Feature c of a token of the g-th sequence; 0 behind the head's last.
template <typename T>
LENGTHWISE_DEVICE float Feature(const HeadSource<T>& source, int g, int64_t token, int c) {
  if (c >= source.head_size) return 0;
  const T* vector = source.data + g * source.sequence + token * source.token;
  float x = ToFloat(vector[c]);
  if (source.rotation != nullptr) {
    const float* angles = source.rotation + token * source.head_size;
    const float sine = angles[c / 2], cosine = angles[source.head_size / 2 + c / 2];
    const float other = ToFloat(vector[c ^ 1]);
    x = c % 2 == 0 ? x * cosine - other * sine : other * sine + x * cosine;
  }
  if (source.bias != nullptr) x += source.bias[c];
  return source.scale * x;
}

// `count` tokens from `first` on of the first sequences to [sequences, capacity, kStride]; zeros
// behind them. Neighbouring threads read neighbouring features, so a head's vector is one access.
template <typename Head, typename T>
LENGTHWISE_DEVICE void StageVectors(const HeadSource<T>& source, int sequences, int64_t first,
                                    int count, int capacity, float* to) {
  const int c = simt::Thread() % Head::kFeatures;
  Walk walk(simt::Thread() / Head::kFeatures, simt::Threads() / Head::kFeatures, capacity);
  for (; walk.outer < sequences; walk.Next()) {
    to[(walk.outer * capacity + walk.inner) * Head::kStride + c] =
        walk.inner < count ? Feature(source, walk.outer, first + walk.inner, c) : 0.0F;
  }
}

// `count` numbers of each of the sequences, `stride` apart, to [sequences, capacity].
LENGTHWISE_DEVICE void StageNumbers(const float* from, int64_t stride, int sequences, int count,
                                    int capacity, float* to) {
  for (Walk walk = WalkOfThread(capacity); walk.outer < sequences; walk.Next()) {
    to[walk.outer * capacity + walk.inner] =
        walk.inner < count ? from[walk.outer * stride + walk.inner] : 0.0F;
  }
}

// Locates the tile's vector of query i and key j: data + i * row + j * kStride.
struct RelativeTile {
  const float* data;
  int row;
};

// R of the queries i0 .. and keys j0 .., read along the keys, which is how it lies in memory. Zeros
// behind the last query and key. `relative` is the head's.
template <typename Head>
LENGTHWISE_DEVICE RelativeTile StageRelative(const AttentionShape& shape, const float* relative,
                                             bool toeplitz, int64_t i0, int64_t j0, int queries,
                                             int keys, float* to) {
  const int64_t n = shape.queries, m = shape.keys;
  if (toeplitz) {
    const int places = queries + keys - 1;
    // The diagonal of the tile's last query and first key.
    const int64_t first = j0 - i0 - (queries - 1) + n - 1;
    for (Walk walk = WalkOfThread(places); walk.outer < Head::kFeatures; walk.Next()) {
      const int c = walk.outer;
      const int64_t place = first + walk.inner;
      const bool there = c < shape.head_size && place >= 0 && place < n + m - 1;
      to[walk.inner * Head::kStride + c] = there ? relative[c * (n + m - 1) + place] : 0.0F;
    }
    return {to + (queries - 1) * Head::kStride, -Head::kStride};
  }
  const int row = keys * Head::kStride + 4;
  for (Walk walk = WalkOfThread(keys); walk.outer < queries; walk.Next()) {
    const int64_t i = i0 + walk.outer, j = j0 + walk.inner;
    float* vector = to + walk.outer * row + walk.inner * Head::kStride;
    LENGTHWISE_UNROLL
    for (int c = 0; c < Head::kFeatures; ++c) {
      const bool there = c < shape.head_size && i < n && j < m;
      vector[c] = there ? relative[(c * n + i) * m + j] : 0.0F;
    }
  }
  return {to, row};
}

// A of the same, at i * (keys + 1) + j.
LENGTHWISE_DEVICE void StageAdditive(const AttentionShape& shape, const float* additive, int64_t i0,
                                     int64_t j0, int queries, int keys, float* to) {
  for (Walk walk = WalkOfThread(keys); walk.outer < queries; walk.Next()) {
    const int64_t i = i0 + walk.outer, j = j0 + walk.inner;
    const bool there = i < shape.queries && j < shape.keys;
    to[walk.outer * (keys + 1) + walk.inner] = there ? additive[i * shape.keys + j] : 0.0F;
  }
}

// The features of a lane.
template <int kWidth>
LENGTHWISE_DEVICE void LoadFeatures(const float* from, float (&x)[kWidth]) {
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; c += 4) {
    const simt::Float4 four = simt::Load<4>(from + c);
    LENGTHWISE_UNROLL
    for (int f = 0; f < 4; ++f) x[c + f] = four.x[f];
  }
}

template <int kWidth>
LENGTHWISE_DEVICE float Dot(const float (&x)[kWidth], const float* y) {
  float sum = 0;
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; c += 4) {
    const simt::Float4 four = simt::Load<4>(y + c);
    LENGTHWISE_UNROLL
    for (int f = 0; f < 4; ++f) sum += x[c + f] * four.x[f];
  }
  return sum;
}

// sums += weight * x
template <int kWidth>
LENGTHWISE_DEVICE void AddWeighted(float weight, const float* x, float (&sums)[kWidth]) {
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; c += 4) {
    const simt::Float4 four = simt::Load<4>(x + c);
    LENGTHWISE_UNROLL
    for (int f = 0; f < 4; ++f) sums[c + f] += weight * four.x[f];
  }
}

// Each number becomes the sum of those of a head's lanes.
template <typename Head, int kCount>
LENGTHWISE_DEVICE void AddOverLanes(float (&numbers)[kCount]) {
  LENGTHWISE_UNROLL
  for (int mask = 1; mask < Head::kLanes; mask *= 2) simt::AddOther(mask, numbers);
}

// Turns a lane's gradients of turned features back.
template <int kWidth>
LENGTHWISE_DEVICE void TurnBack(const float* rotation, int64_t token, int head_size,
                                int first_feature, float (&x)[kWidth]) {
  if (rotation == nullptr) return;
  const float* angles = rotation + token * head_size;
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; c += 2) {
    const int angle = (first_feature + c) / 2;
    if (2 * angle >= head_size) break;
    const float sine = angles[angle], cosine = angles[head_size / 2 + angle];
    const float even = x[c], odd = x[c + 1];
    x[c] = even * cosine + odd * sine;
    x[c + 1] = odd * cosine - even * sine;
  }
}

template <int kWidth, typename T>
LENGTHWISE_DEVICE void StoreFeatures(const float (&x)[kWidth], int first_feature, int head_size,
                                     T* to) {
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; ++c) {
    if (first_feature + c < head_size) to[first_feature + c] = FromFloat<T>(x[c]);
  }
}

// The tile of a block of TokenTiles, and the token of its thread.
template <typename Head>
struct TokenPlace {
  LENGTHWISE_DEVICE TokenPlace(const AttentionShape& shape, const TokenTiles& tiles,
                               int64_t tokens) {
    // Groups of sequences follow each other, because they read the same R.
    int64_t block = simt::Block();
    group = block % tiles.sequence_groups;
    block /= tiles.sequence_groups;
    tile = block % tiles.own_tiles;
    block /= tiles.own_tiles;
    h = block % shape.heads;
    p = block / shape.heads;
    b = group * tiles.sequences;
    sequences = Smaller(tiles.sequences, shape.sequences - b);
    first = tile * tiles.own;
    count = Smaller(tiles.own, tokens - first);
    const int slot = simt::Thread() / Head::kLanes;
    feature = simt::Thread() % Head::kLanes * Head::kWidth;
    used = slot < sequences * tiles.own && slot % tiles.own < count;
    // Threads without a token repeat the first one's work without writing.
    g = used ? slot / tiles.own : 0;
    own = used ? slot % tiles.own : 0;
  }

  // The thread's own vector of a source. Brought by all threads to [sequences, own, kStride] of
  // shared memory first, because a vector's numbers lie next to each other.
  template <typename T>
  LENGTHWISE_DEVICE void BringOwn(const HeadSource<T>& source, int capacity, float* shared,
                                  float (&x)[Head::kWidth]) const {
    // All threads have read the previous contents.
    simt::Barrier();
    StageVectors<Head>(source, sequences, first, count, capacity, shared);
    simt::Barrier();
    LoadFeatures(shared + (g * capacity + own) * Head::kStride + feature, x);
  }

  // The place of the thread's sequence and head in [P, B, H].
  LENGTHWISE_DEVICE int64_t Item(const AttentionShape& shape, int sequence) const {
    return (p * shape.sequences + b + sequence) * shape.heads + h;
  }

  int64_t p, h, b, group, tile;
  int sequences;  // that are there
  int64_t first;  // token of the tile
  int count;      // tokens that are there
  bool used;      // whether the thread has a token
  int g, own;     // the thread's sequence and token
  int feature;    // the first that its lane has
};

LENGTHWISE_DEVICE const float* AdditiveOf(const AttentionShape& shape, const AttentionTerms& terms,
                                          int64_t p, int64_t h) {
  return terms.additive +
         ((terms.additive_shared ? 0 : p) * shape.heads + h) * shape.queries * shape.keys;
}

LENGTHWISE_EVERYWHERE int64_t RelativePlaces(const AttentionShape& shape, bool toeplitz) {
  return toeplitz ? shape.queries + shape.keys - 1 : shape.queries * shape.keys;
}

LENGTHWISE_DEVICE const float* RelativeOf(const AttentionShape& shape, const AttentionTerms& terms,
                                          int64_t p, int64_t h) {
  return terms.relative +
         (p * shape.heads + h) * shape.head_size * RelativePlaces(shape, terms.toeplitz);
}

// Number of keys that a query sees, starting at key 0.
LENGTHWISE_DEVICE int64_t Seen(const AttentionShape& shape, const AttentionTerms& terms,
                               int64_t query) {
  const int64_t seen = terms.first_query + query + 1;
  return terms.causal && seen < shape.keys ? seen : shape.keys;
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_KERNELS_INL_H_
