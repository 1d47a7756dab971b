// The backward kernels of attention_cuda.h for gradients of each sequence: of
// queries (and, from them, of u and w), keys and values. With probabilities p, the output's
// gradient do and the logits' gradients dl:
//
//   p_ij = exp(logit_ij - log_sum_exp_i),   dl_ij = p_ij (do_i . v_j - do_i . o_i)
//   dq_i = scale sum_j dl_ij (k_j + R_ij),  dk_j = scale sum_i dl_ij (q_i + u),  dv_j = sum_i p_ij
//   do_i
//
// Each gradient is one thread's sum: a query's thread goes through the keys, and in a kernel of its
// own a key's thread through the queries. Logits are computed in both, so that nothing has to be
// added across threads.
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_INL_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/attention_forward-inl.h"

namespace lengthwise::kernels {

template <typename T>
struct BackwardCall {
  AttentionInputsOf<T> inputs;
  HeadVectors<const T> output, output_gradient;
  const float* log_sum_exp;
  AttentionGradientsOf<T> gradients;
  float scale;
  // Workspace: do . o of every query, [P, B, H, n].
  float* deltas;
  // Sums of blocks, [P, H, BlocksOfHead, dh].
  float* content_bias_parts;
  float* position_bias_parts;
  // Sums of chunks, [P, H, chunks, ...].
  float* relative_parts;
  float* additive_parts;
};

constexpr int kDeltaThreads = 128;

// One thread a query.
template <typename T>
LENGTHWISE_KERNEL void DeltaKernel(BackwardCall<T> call) {
  const AttentionShape& shape = call.inputs.shape;
  const int64_t row = simt::Block() * kDeltaThreads + simt::Thread();
  if (row >= shape.members * shape.sequences * shape.heads * shape.queries) return;
  const int64_t i = row % shape.queries, item = row / shape.queries;
  const int64_t h = item % shape.heads, b = item / shape.heads % shape.sequences;
  const int64_t p = item / shape.heads / shape.sequences;
  const HeadVectors<const T>&o = call.output, &g = call.output_gradient;
  const T* output = o.data + p * o.member + b * o.sequence + h * o.head + i * o.token;
  const T* gradient = g.data + p * g.member + b * g.sequence + h * g.head + i * g.token;
  float sum = 0;
  for (int64_t c = 0; c < shape.head_size; ++c) sum += ToFloat(output[c]) * ToFloat(gradient[c]);
  call.deltas[row] = sum;
}

// Adds `sums` of the block's tokens up, each feature over all of them, always in the same order: to
// out[0 .. head_size). Threads without a token must have zeros.
template <typename Head>
LENGTHWISE_DEVICE void SumOverTokens(const float (&sums)[Head::kWidth], int head_size,
                                     float* by_thread, float* by_part, float* out) {
  // A column is one of kSumsAtOnce features of one lane; a part is some of the block's tokens.
  constexpr int kColumns = kSumsAtOnce * Head::kLanes;
  constexpr int kParts = kTokenThreads / kColumns;
  constexpr int kTokensOfPart = kTokenThreads / Head::kLanes / kParts;
  const int t = simt::Thread();
  const int column = t % kColumns, part = t / kColumns;
  LENGTHWISE_UNROLL
  for (int first = 0; first < Head::kWidth; first += kSumsAtOnce) {
    LENGTHWISE_UNROLL
    for (int f = 0; f < kSumsAtOnce; ++f) by_thread[t * kSumsAtOnce + f] = sums[first + f];
    simt::Barrier();
    float sum = 0;
    for (int token = 0; token < kTokensOfPart; ++token) {
      sum += by_thread[(part * kTokensOfPart + token) * kColumns + column];
    }
    by_part[t] = sum;
    simt::Barrier();
    if (t < kColumns) {
      float total = 0;
      for (int k = 0; k < kParts; ++k) total += by_part[k * kColumns + t];
      const int c = t / kSumsAtOnce * Head::kWidth + first + t % kSumsAtOnce;
      if (c < head_size) out[c] = total;
    }
  }
}

template <typename T, typename Head, bool kRelative>
LENGTHWISE_KERNEL void QueryKernel(BackwardCall<T> call, TokenTiles tiles) {
  simt::SharedArrays shared;
  KeyTiles<T, Head, kRelative> keys(call.inputs, tiles, call.scale, shared);
  const TokenPlace<Head>& place = keys.place();
  const AttentionShape& shape = call.inputs.shape;
  const int head_size = static_cast<int>(shape.head_size);
  const int64_t query = keys.query(), row = place.Item(shape, place.g) * shape.queries + query;
  const float log_sum_exp = call.log_sum_exp[row], delta = call.deltas[row];
  float output_gradient[Head::kWidth];
  keys.BringOwn(SourceOf(shape, call.output_gradient, place.p, place.h, place.b, nullptr),
                output_gradient);

  float by_content[Head::kWidth] = {}, by_position[Head::kWidth] = {};
  for (int64_t j0 = 0; j0 < keys.keys(); j0 += tiles.others) {
    const int count = keys.Bring(j0);
    for (int j = 0; j < count; j += kStep) {
      float sums[2 * kStep];  // logits, then do . v
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        sums[k] = keys.LogitPart(j + k);
        sums[kStep + k] = Dot(output_gradient, keys.Value(j + k));
      }
      AddOverLanes<Head>(sums);
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        const float probability = expf(keys.Logit(j + k, sums[k]) - log_sum_exp);
        const float logit_gradient = probability * (sums[kStep + k] - delta);
        AddWeighted(logit_gradient, keys.Key(j + k), by_content);
        if (kRelative) AddWeighted(logit_gradient, keys.Relative(j + k), by_position);
      }
    }
  }
  float gradient[Head::kWidth];
  LENGTHWISE_UNROLL
  for (int c = 0; c < Head::kWidth; ++c) {
    // Scaled before SumOverTokens adds them, too.
    by_content[c] = place.used ? call.scale * by_content[c] : 0.0F;
    by_position[c] = place.used ? call.scale * by_position[c] : 0.0F;
    gradient[c] = by_content[c] + by_position[c];
  }
  if (place.used) {
    TurnBack(call.inputs.terms.rotation == nullptr
                 ? nullptr
                 : call.inputs.terms.rotation + place.p * shape.keys * shape.head_size,
             query, head_size, place.feature, gradient);
    const HeadVectors<T>& to = call.gradients.queries;
    StoreFeatures(gradient, place.feature, head_size,
                  to.data + place.p * to.member + place.h * to.head +
                      (place.b + place.g) * to.sequence + query * to.token);
  }
  if (kRelative) {
    float* by_thread = shared.Take(kTokenThreads * kSumsAtOnce);
    float* by_part = shared.Take(kTokenThreads);
    const int64_t block =
        ((place.p * shape.heads + place.h) * tiles.own_tiles + place.tile) * tiles.sequence_groups +
        place.group;
    SumOverTokens<Head>(by_content, head_size, by_thread, by_part,
                        call.content_bias_parts + block * head_size);
    SumOverTokens<Head>(by_position, head_size, by_thread, by_part,
                        call.position_bias_parts + block * head_size);
  }
}

template <typename T, typename Head, bool kRelative>
LENGTHWISE_KERNEL void KeyKernel(BackwardCall<T> call, TokenTiles tiles) {
  simt::SharedArrays shared;
  const AttentionShape& shape = call.inputs.shape;
  const AttentionTerms& terms = call.inputs.terms;
  const TokenPlace<Head> place(shape, tiles, shape.keys);
  const int head_size = static_cast<int>(shape.head_size);
  const int tokens = tiles.sequences * tiles.others;
  float* own = shared.Take(tiles.sequences * tiles.own * Head::kStride);
  float* contents = shared.Take(tokens * Head::kStride);
  float* positions = kRelative ? shared.Take(tokens * Head::kStride) : nullptr;
  float* output_gradients = shared.Take(tokens * Head::kStride);
  float* log_sum_exps = shared.Take(tokens);
  float* deltas = shared.Take(tokens);
  float* relative = nullptr;
  if (kRelative) {
    relative = shared.Take(static_cast<int>(
        RelativeTileFloats(terms.toeplitz, tiles.others, tiles.own, Head::kStride)));
  }
  float* additive = nullptr;
  if (terms.additive != nullptr) {
    additive = shared.Take(static_cast<int>(AdditiveTileFloats(tiles.others, tiles.own)));
  }

  const int64_t key_index = place.first + place.own;
  const HeadSource<T> keys =
      SourceOf(shape, call.inputs.keys, place.p, place.h, place.b, terms.rotation);
  const HeadSource<T> gradients =
      SourceOf(shape, call.output_gradient, place.p, place.h, place.b, nullptr);
  HeadSource<T> queries =
      SourceOf(shape, call.inputs.queries, place.p, place.h, place.b, terms.rotation);
  queries.scale = call.scale;
  const int64_t bias = BiasOf(shape, terms, place.p, place.h);
  float key[Head::kWidth], value[Head::kWidth];
  place.BringOwn(keys, tiles.own, own, key);
  place.BringOwn(SourceOf(shape, call.inputs.values, place.p, place.h, place.b, nullptr), tiles.own,
                 own, value);

  float key_gradient[Head::kWidth] = {}, value_gradient[Head::kWidth] = {};
  for (int64_t i0 = 0; i0 < shape.queries; i0 += tiles.others) {
    const int count = Smaller(tiles.others, shape.queries - i0);
    // No query of the tile sees the block's first key.
    if (Seen(shape, terms, i0 + count - 1) <= place.first) continue;
    simt::Barrier();
    if (kRelative) queries.bias = terms.content_bias + bias;
    StageVectors<Head>(queries, place.sequences, i0, count, tiles.others, contents);
    if (kRelative) {
      queries.bias = terms.position_bias + bias;
      StageVectors<Head>(queries, place.sequences, i0, count, tiles.others, positions);
    }
    StageVectors<Head>(gradients, place.sequences, i0, count, tiles.others, output_gradients);
    const int64_t row = place.Item(shape, 0) * shape.queries + i0;
    const int64_t stride = shape.heads * shape.queries;
    StageNumbers(call.log_sum_exp + row, stride, place.sequences, count, tiles.others,
                 log_sum_exps);
    StageNumbers(call.deltas + row, stride, place.sequences, count, tiles.others, deltas);
    RelativeTile relative_tile = {};
    if (kRelative) {
      relative_tile =
          StageRelative<Head>(shape, RelativeOf(shape, terms, place.p, place.h), terms.toeplitz, i0,
                              place.first, tiles.others, tiles.own, relative);
    }
    if (additive != nullptr) {
      StageAdditive(shape, AdditiveOf(shape, terms, place.p, place.h), i0, place.first,
                    tiles.others, tiles.own, additive);
    }
    simt::Barrier();
    for (int i = 0; i < count; i += kStep) {
      const int first = place.g * tiles.others + i;
      const int vector = first * Head::kStride + place.feature;
      float sums[2 * kStep];
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        sums[k] = Dot(key, contents + vector + k * Head::kStride);
        if (kRelative) {
          float position[Head::kWidth];
          LoadFeatures(positions + vector + k * Head::kStride, position);
          sums[k] += Dot(position, relative_tile.data + (i + k) * relative_tile.row +
                                       place.own * Head::kStride + place.feature);
        }
        sums[kStep + k] = Dot(value, output_gradients + vector + k * Head::kStride);
      }
      AddOverLanes<Head>(sums);
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        float logit = sums[k];
        if (additive != nullptr) logit += additive[(i + k) * (tiles.own + 1) + place.own];
        const bool seen = i + k < count && key_index < Seen(shape, terms, i0 + i + k);
        const float probability = seen ? expf(logit - log_sum_exps[first + k]) : 0.0F;
        const float logit_gradient = probability * (sums[kStep + k] - deltas[first + k]);
        AddWeighted(logit_gradient, contents + vector + k * Head::kStride, key_gradient);
        AddWeighted(probability, output_gradients + vector + k * Head::kStride, value_gradient);
      }
    }
  }
  if (!place.used) return;
  TurnBack(keys.rotation, key_index, head_size, place.feature, key_gradient);
  const auto store = [&](const float(&x)[Head::kWidth], const HeadVectors<T>& to) {
    StoreFeatures(x, place.feature, head_size,
                  to.data + place.p * to.member + place.h * to.head +
                      (place.b + place.g) * to.sequence + key_index * to.token);
  };
  store(key_gradient, call.gradients.keys);
  store(value_gradient, call.gradients.values);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_BACKWARD_INL_H_
