// The backward kernels of attention_cuda.h for terms that the sequences of a batch share: the
// gradients of A and R,
//
//   dA_ij = sum_b dl_bij,   dR_ij = scale sum_b dl_bij (q_bi + w)
//
// and for an R that depends on j - i alone the sums of those over its diagonals. A thread owns a
// pair, or a diagonal, has its R and sums in registers, and goes through the sequences of a chunk
// of the batch in their order. LaunchSum then adds the chunks up in their order.
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_TERMS_BACKWARD_INL_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_TERMS_BACKWARD_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/attention_backward-inl.h"

namespace lengthwise::kernels {

// Queries and their log-sum-exps, and keys, of a head's sequences in shared memory.
template <typename T, typename Head, bool kRelative>
class PairSources {
 public:
  LENGTHWISE_DEVICE PairSources(const BackwardCall<T>& call, int64_t p, int64_t h, int sequences,
                                int queries, int keys, simt::SharedArrays& shared)
      : call_(call), p_(p), h_(h), query_capacity_(queries), key_capacity_(keys) {
    contents_ = shared.Take(sequences * queries * Head::kStride);
    if (kRelative) positions_ = shared.Take(sequences * queries * Head::kStride);
    output_gradients_ = shared.Take(sequences * queries * Head::kStride);
    log_sum_exps_ = shared.Take(sequences * queries);
    deltas_ = shared.Take(sequences * queries);
    keys_ = shared.Take(sequences * keys * Head::kStride);
    values_ = shared.Take(sequences * keys * Head::kStride);
  }

  // Loads the inputs of `sequences` sequences from b on: `queries` queries from i0 on and `keys`
  // keys from j0 on. Missing queries and keys are zeros.
  LENGTHWISE_DEVICE void Bring(int64_t b, int sequences, int64_t i0, int queries, int64_t j0,
                               int keys) {
    const AttentionShape& shape = call_.inputs.shape;
    const AttentionTerms& terms = call_.inputs.terms;
    HeadSource<T> source = SourceOf(shape, call_.inputs.queries, p_, h_, b, terms.rotation);
    source.scale = call_.scale;
    const int64_t bias = BiasOf(shape, terms, p_, h_);
    // The previous sequences' vectors may still be in use.
    simt::Barrier();
    if (kRelative) source.bias = terms.content_bias + bias;
    StageVectors<Head>(source, sequences, i0, queries, query_capacity_, contents_);
    if (kRelative) {
      source.bias = terms.position_bias + bias;
      StageVectors<Head>(source, sequences, i0, queries, query_capacity_, positions_);
    }
    StageVectors<Head>(SourceOf(shape, call_.output_gradient, p_, h_, b, nullptr), sequences, i0,
                       queries, query_capacity_, output_gradients_);
    const int64_t row = ((p_ * shape.sequences + b) * shape.heads + h_) * shape.queries + i0;
    const int64_t stride = shape.heads * shape.queries;
    StageNumbers(call_.log_sum_exp + row, stride, sequences, queries, query_capacity_,
                 log_sum_exps_);
    StageNumbers(call_.deltas + row, stride, sequences, queries, query_capacity_, deltas_);
    StageKeys(SourceOf(shape, call_.inputs.keys, p_, h_, b, terms.rotation), sequences, j0, keys,
              keys_);
    StageKeys(SourceOf(shape, call_.inputs.values, p_, h_, b, nullptr), sequences, j0, keys,
              values_);
    simt::Barrier();
  }

  // A lane's parts of the logit of a pair with the vector `relative`, and of do . v; query and key
  // are places in shared memory.
  LENGTHWISE_DEVICE void Parts(int query, int key, int feature,
                               const float (&relative)[Head::kWidth], float& logit,
                               float& product) const {
    const int at_query = query * Head::kStride + feature, at_key = key * Head::kStride + feature;
    float x[Head::kWidth];
    LoadFeatures(keys_ + at_key, x);
    logit = Dot(x, contents_ + at_query);
    if (kRelative) logit += Dot(relative, positions_ + at_query);
    LoadFeatures(values_ + at_key, x);
    product = Dot(x, output_gradients_ + at_query);
  }

  LENGTHWISE_DEVICE float LogitGradient(int query, float logit, float product) const {
    return expf(logit - log_sum_exps_[query]) * (product - deltas_[query]);
  }

  LENGTHWISE_DEVICE const float* Position(int query, int feature) const {
    return positions_ + query * Head::kStride + feature;
  }

 private:
  // Tokens before the first and behind the last are zeros.
  LENGTHWISE_DEVICE void StageKeys(const HeadSource<T>& source, int sequences, int64_t j0, int keys,
                                   float* to) const {
    const int c = simt::Thread() % Head::kFeatures;
    Walk walk(simt::Thread() / Head::kFeatures, simt::Threads() / Head::kFeatures, key_capacity_);
    for (; walk.outer < sequences; walk.Next()) {
      const int64_t token = j0 + walk.inner;
      const bool there = walk.inner < keys && token >= 0 && token < call_.inputs.shape.keys;
      to[(walk.outer * key_capacity_ + walk.inner) * Head::kStride + c] =
          there ? Feature(source, walk.outer, token, c) : 0.0F;
    }
  }

  const BackwardCall<T>& call_;
  const int64_t p_, h_;
  const int query_capacity_, key_capacity_;
  float* contents_;
  float* positions_ = nullptr;
  float* output_gradients_;
  float* log_sum_exps_;
  float* deltas_;
  float* keys_;
  float* values_;
};

// A chunk's sequences.
struct Chunk {
  int64_t begin, end;
};

LENGTHWISE_DEVICE Chunk ChunkOf(const AttentionShape& shape, int64_t chunk, int64_t size) {
  const int64_t begin = chunk * size, end = begin + size;
  return {begin, end < shape.sequences ? end : shape.sequences};
}

// A lane's features of a vector whose numbers are `stride` apart, as R's are.
template <int kWidth>
LENGTHWISE_DEVICE void LoadChannels(const float* from, int first_feature, int head_size,
                                    int64_t stride, float (&x)[kWidth]) {
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; ++c) {
    x[c] = first_feature + c < head_size ? from[(first_feature + c) * stride] : 0.0F;
  }
}
template <int kWidth>
LENGTHWISE_DEVICE void StoreChannels(const float (&x)[kWidth], int first_feature, int head_size,
                                     int64_t stride, float* to) {
  LENGTHWISE_UNROLL
  for (int c = 0; c < kWidth; ++c) {
    if (first_feature + c < head_size) to[(first_feature + c) * stride] = x[c];
  }
}

// The gradients of A (unless additive_parts is null) and of an R of every pair (likewise).
template <typename T, typename Head, bool kRelative>
LENGTHWISE_KERNEL void PairKernel(BackwardCall<T> call, PairTiles tiles) {
  const AttentionShape& shape = call.inputs.shape;
  const AttentionTerms& terms = call.inputs.terms;
  const int64_t n = shape.queries, m = shape.keys;
  int64_t block = simt::Block();
  // Chunks first: those at work at the same time read other sequences and the same R.
  const int64_t chunk = block % tiles.chunks;
  block /= tiles.chunks;
  const int64_t j0 = block % tiles.key_tiles * tiles.keys;
  block /= tiles.key_tiles;
  const int64_t i0 = block % tiles.query_tiles * tiles.queries;
  block /= tiles.query_tiles;
  const int64_t h = block % shape.heads, p = block / shape.heads;
  const int queries = Smaller(tiles.queries, n - i0), keys = Smaller(tiles.keys, m - j0);

  const int pair = simt::Thread() / Head::kLanes;
  const int feature = simt::Thread() % Head::kLanes * Head::kWidth;
  // Neighbouring threads have neighbouring keys, which is how A and R lie in memory.
  const bool used =
      pair < tiles.queries * tiles.keys && pair / tiles.keys < queries && pair % tiles.keys < keys;
  const int own_query = used ? pair / tiles.keys : 0, own_key = used ? pair % tiles.keys : 0;
  const int64_t i = i0 + own_query, j = j0 + own_key;
  const bool seen = j < Seen(shape, terms, i);

  const int64_t places = RelativePlaces(shape, terms.toeplitz);
  const int64_t place = terms.toeplitz ? j - i + n - 1 : i * m + j;
  float relative[Head::kWidth] = {};
  if (kRelative) {
    LoadChannels(RelativeOf(shape, terms, p, h) + place, feature, static_cast<int>(shape.head_size),
                 places, relative);
  }
  const float additive = terms.additive == nullptr ? 0 : AdditiveOf(shape, terms, p, h)[i * m + j];

  simt::SharedArrays shared;
  PairSources<T, Head, kRelative> sources(call, p, h, tiles.sequences, tiles.queries, tiles.keys,
                                          shared);
  float relative_gradient[Head::kWidth] = {};
  float additive_gradient = 0;
  Chunk sequences = ChunkOf(shape, chunk, tiles.chunk_sequences);
  // Skip a tile in which causality hides every pair.
  if (Seen(shape, terms, i0 + queries - 1) <= j0) sequences.end = sequences.begin;
  for (int64_t b = sequences.begin; b < sequences.end; b += tiles.sequences) {
    const int count = Smaller(tiles.sequences, sequences.end - b);
    sources.Bring(b, count, i0, queries, j0, keys);
    for (int g = 0; g < count; g += kStep) {
      float sums[2 * kStep];
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        // Behind the last sequence: the last again, which is not added.
        const int sequence = g + k < count ? g + k : count - 1;
        sources.Parts(sequence * tiles.queries + own_query, sequence * tiles.keys + own_key,
                      feature, relative, sums[k], sums[kStep + k]);
      }
      AddOverLanes<Head>(sums);
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        if (!seen || g + k >= count) continue;
        const int query = (g + k) * tiles.queries + own_query;
        const float gradient = sources.LogitGradient(query, sums[k] + additive, sums[kStep + k]);
        additive_gradient += gradient;
        if (kRelative) AddWeighted(gradient, sources.Position(query, feature), relative_gradient);
      }
    }
  }
  if (!used) return;
  const int64_t head = (p * shape.heads + h) * tiles.chunks + chunk;
  if (call.additive_parts != nullptr && feature == 0) {
    call.additive_parts[head * n * m + i * m + j] = additive_gradient;
  }
  if (!terms.toeplitz && call.relative_parts != nullptr) {
    StoreChannels(relative_gradient, feature, static_cast<int>(shape.head_size), places,
                  call.relative_parts + head * shape.head_size * places + place);
  }
}

// The gradient of an R that depends on j - i alone. The tile's diagonal d of the queries i0 ..
// meets the keys i + d - (n - 1).
template <typename T, typename Head>
LENGTHWISE_KERNEL void DiagonalKernel(BackwardCall<T> call, DiagonalTiles tiles) {
  const AttentionShape& shape = call.inputs.shape;
  const AttentionTerms& terms = call.inputs.terms;
  const int64_t n = shape.queries, m = shape.keys, places = n + m - 1;
  int64_t block = simt::Block();
  const int64_t chunk = block % tiles.chunks;
  block /= tiles.chunks;
  const int64_t d0 = block % tiles.diagonal_tiles * tiles.diagonals;
  block /= tiles.diagonal_tiles;
  const int64_t h = block % shape.heads, p = block / shape.heads;

  const int slot = simt::Thread() / Head::kLanes;
  const int feature = simt::Thread() % Head::kLanes * Head::kWidth;
  const bool used = slot < Smaller(tiles.diagonals, places - d0);
  const int own = used ? slot : 0;
  const int64_t place = d0 + own;
  float relative[Head::kWidth] = {};
  LoadChannels(RelativeOf(shape, terms, p, h) + place, feature, static_cast<int>(shape.head_size),
               places, relative);
  const float* additive = terms.additive == nullptr ? nullptr : AdditiveOf(shape, terms, p, h);

  simt::SharedArrays shared;
  PairSources<T, Head, true> sources(call, p, h, 1, tiles.queries, tiles.Keys(), shared);
  float gradient[Head::kWidth] = {};
  const Chunk sequences = ChunkOf(shape, chunk, tiles.chunk_sequences);
  for (int64_t b = sequences.begin; b < sequences.end; ++b) {
    for (int64_t i0 = 0; i0 < n; i0 += tiles.queries) {
      const int count = Smaller(tiles.queries, n - i0);
      const int64_t j0 = i0 + d0 - (n - 1);
      // The block's diagonals pass by all keys.
      if (j0 >= Seen(shape, terms, i0 + count - 1) || j0 + tiles.Keys() <= 0) continue;
      sources.Bring(b, 1, i0, count, j0, tiles.Keys());
      for (int i = 0; i < count; i += kStep) {
        float sums[2 * kStep];
        LENGTHWISE_UNROLL
        for (int k = 0; k < kStep; ++k) {
          sources.Parts(i + k, i + k + own, feature, relative, sums[k], sums[kStep + k]);
        }
        AddOverLanes<Head>(sums);
        LENGTHWISE_UNROLL
        for (int k = 0; k < kStep; ++k) {
          const int64_t query = i0 + i + k, key = j0 + i + k + own;
          if (i + k >= count || key < 0 || key >= Seen(shape, terms, query)) continue;
          const float logit = additive == nullptr ? sums[k] : sums[k] + additive[query * m + key];
          AddWeighted(sources.LogitGradient(i + k, logit, sums[kStep + k]),
                      sources.Position(i + k, feature), gradient);
        }
      }
    }
  }
  if (!used) return;
  StoreChannels(gradient, feature, static_cast<int>(shape.head_size), places,
                call.relative_parts +
                    ((p * shape.heads + h) * tiles.chunks + chunk) * shape.head_size * places +
                    place);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_TERMS_BACKWARD_INL_H_
