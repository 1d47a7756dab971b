// The backward pass of tensor_attention_cuda.h, one kernel. It computes logits again. Sums over the
// tiles of queries, which are the gradients of keys and values, and the sum over sequences, which
// is that of W_R, lie in shared memory, where each thread adds to numbers of its own. In registers
// they took as long on an H200, and a kernel for each number of chunks.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_BACKWARD_INL_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_BACKWARD_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/tensor_attention-inl.h"
#include "models/kernels/tensor_attention_forward-inl.h"

namespace lengthwise::kernels {

// Floats of a warp's sums in shared memory.
LENGTHWISE_EVERYWHERE int FloatsOfSums(int chunks, bool relative) {
  return (2 * chunks * kChunk + (relative ? kModel : 0)) * kHeadSize;
}

inline int64_t TensorBackwardBytes(int chunks, bool relative) {
  return TensorForwardBytes(chunks, relative) +
         int64_t{4} *
             (FloatsOfRows(chunks * kChunk, kGradientStride) + 2 * kBlockHeads * chunks * kChunk +
              kBlockHeads * FloatsOfSums(chunks, relative));
}

// A result [16, 8] in float32 at `to`, which is [16, 8].
LENGTHWISE_DEVICE void LoadResult(const float* from, const TensorPlace& place, float (&d)[4]) {
  LENGTHWISE_UNROLL
  for (int r = 0; r < 2; ++r) {
    const auto two = simt::Load<2>(from + (place.g + 8 * r) * kHeadSize + 2 * place.t);
    d[2 * r] = two.x[0];
    d[2 * r + 1] = two.x[1];
  }
}
LENGTHWISE_DEVICE void StoreResult(const float (&d)[4], const TensorPlace& place, float* to) {
  LENGTHWISE_UNROLL
  for (int r = 0; r < 2; ++r) {
    simt::Store(simt::Several<float, 2>{{d[2 * r], d[2 * r + 1]}},
                to + (place.g + 8 * r) * kHeadSize + 2 * place.t);
  }
}

// The rows of a first operand [16, 16] become its columns.
LENGTHWISE_DEVICE void Transpose(const uint32_t (&a)[4], uint32_t (&transposed)[4]) {
  transposed[0] = simt::Transposed(a[0]);
  transposed[1] = simt::Transposed(a[2]);
  transposed[2] = simt::Transposed(a[1]);
  transposed[3] = simt::Transposed(a[3]);
}

// What a tile of sixteen queries, from token i0 on, needs of its own.
template <bool kRelative>
struct QueryTile {
  Queries<kRelative> queries;
  // Gradients of the outputs as first operand [16, 8] and as second [16 queries, 8]; queries as the
  // latter.
  uint32_t gradient[2], gradient_by_query[2], content_by_query[2];
  float delta[2], log_sum_exp[2];  // of the rows g and g + 8
  int i0;
};

// Copies the gradients of the outputs to shared memory, and to `numbers` [heads, capacity, 2] what
// the softmax of a row needs: the sum of output times gradient, and the logarithm of its sum.
LENGTHWISE_DEVICE void StageGradients(const TensorCall& call, const TensorPlace& place,
                                      int64_t sequence, int capacity, BFloat16* gradients,
                                      float* numbers) {
  const int tokens = place.tokens;
  const BFloat16* from = call.output_gradient + place.Row(sequence, 1);
  const BFloat16* outputs = call.known_output + place.Row(sequence, 1);
  const float* log_sum_exp =
      call.log_sum_exp + (sequence * kTensorHeads + place.first_head) * tokens;
  // All are under way before the first one is needed.
  constexpr int kOfThread = kMostTensorTokens * kBlockHeads / kTensorThreads;
  Eight gradient[kOfThread] = {}, output[kOfThread] = {};
  float sum_exp[kOfThread];
  LENGTHWISE_UNROLL
  for (int k = 0; k < kOfThread; ++k) {
    const int i = simt::Thread() + k * kTensorThreads;
    const int row = i / kBlockHeads, head = i % kBlockHeads;
    // A token that is not there has no probabilities.
    sum_exp[k] = INFINITY;
    if (row >= tokens) continue;
    gradient[k] = simt::Load<8>(from + row * kModel + head * kHeadSize);
    output[k] = simt::Load<8>(outputs + row * kModel + head * kHeadSize);
    sum_exp[k] = log_sum_exp[head * tokens + row];
  }
  LENGTHWISE_UNROLL
  for (int k = 0; k < kOfThread; ++k) {
    const int i = simt::Thread() + k * kTensorThreads;
    const int row = i / kBlockHeads, head = i % kBlockHeads;
    if (row >= capacity) continue;
    float delta = 0;
    LENGTHWISE_UNROLL
    for (int c = 0; c < kHeadSize; ++c) {
      delta += ToFloat(output[k].x[c]) * ToFloat(gradient[k].x[c]);
    }
    simt::Store(gradient[k], gradients + row * kGradientStride + head * kHeadSize);
    simt::Store(simt::Several<float, 2>{{delta, sum_exp[k]}},
                numbers + 2 * (head * capacity + row));
  }
}

template <bool kRelative>
LENGTHWISE_DEVICE QueryTile<kRelative> BringTile(const TensorCall& call, const TensorPlace& place,
                                                 const BFloat16* rows, const RelativeRows& relative,
                                                 const BFloat16* gradients, const float* numbers,
                                                 int i0) {
  QueryTile<kRelative> tile = {.queries = BringQueries<kRelative>(call, place, rows, relative, i0),
                               .i0 = i0};
  const BFloat16* row =
      gradients + (i0 + simt::Lane() % 16) * kGradientStride + place.warp * kHeadSize;
  simt::LoadMatrices<2, false>(row, tile.gradient);
  simt::LoadMatrices<2, true>(row, tile.gradient_by_query);
  LENGTHWISE_UNROLL
  for (int r = 0; r < 2; ++r) {
    tile.content_by_query[r] = simt::Transposed(tile.queries.content[r]);
    const auto softmax = simt::Load<2>(numbers + 2 * (i0 + place.g + 8 * r));
    tile.delta[r] = softmax.x[0];
    tile.log_sum_exp[r] = softmax.x[1];
  }
  return tile;
}

// Gradients of a tile's queries: of q + u, and of what was rotated.
template <bool kRelative>
struct QueryGradients {
  float content[4] = {};
  float position[8][4] = {};
};
template <>
struct QueryGradients<false> {
  float content[4] = {};
};

// Adds the gradients of a tile of queries and the c-th chunk of keys.
template <bool kRelative>
LENGTHWISE_DEVICE void DifferentiateChunk(const TensorCall& call, const TensorPlace& place,
                                          const BFloat16* rows, const RelativeRows& relative,
                                          const QueryTile<kRelative>& tile, int c,
                                          bool first_sequence, QueryGradients<kRelative>& of_query,
                                          float (&of_keys)[4], float (&of_values)[4]) {
  const int lane = simt::Lane(), tokens = place.tokens;
  const BFloat16* row = rows + (kChunk * c + lane % 16) * kPartsStride + place.warp * kHeadSize;
  uint32_t keys[2], values[2];
  simt::LoadMatrices<2, false>(row + kBlockHeads * kHeadSize, keys);
  simt::LoadMatrices<2, false>(row + 2 * kBlockHeads * kHeadSize, values);
  const float* additive = AdditiveOf(call, place);
  // Probabilities, and gradients of the logits.
  float x[2][4] = {}, dx[2][4] = {};
  LENGTHWISE_UNROLL
  for (int n = 0; n < 2; ++n) {
    const int j0 = kChunk * c + 8 * n;
    AddLogits(tile.queries, keys[n], relative, additive, place, tile.i0, j0, x[n]);
    simt::AddProduct(tile.gradient, values[n], dx[n]);
    LENGTHWISE_UNROLL
    for (int k = 0; k < 4; ++k) {
      const bool there = j0 + 2 * place.t + k % 2 < tokens;
      x[n][k] = there ? simt::Exp2(kExponent * x[n][k] - tile.log_sum_exp[k / 2]) : 0;
      dx[n][k] = x[n][k] * (dx[n][k] - tile.delta[k / 2]);
    }
    if constexpr (!kRelative) {
      if (call.additive_parts != nullptr) {
        float* part =
            call.additive_parts + (place.group * kTensorHeads + place.h) * tokens * tokens;
        LENGTHWISE_UNROLL
        for (int k = 0; k < 4; ++k) {
          const int i = tile.i0 + place.g + k / 2 * 8, j = j0 + 2 * place.t + k % 2;
          if (i >= tokens || j >= tokens) continue;
          float& sum = part[i * tokens + j];
          sum = first_sequence ? dx[n][k] : sum + dx[n][k];
        }
      }
    }
  }
  uint32_t a[4], by_key[4];
  AsOperand(x[0], x[1], a);
  Transpose(a, by_key);
  simt::AddProduct(by_key, tile.gradient_by_query[0], tile.gradient_by_query[1], of_values);
  AsOperand(dx[0], dx[1], a);
  Transpose(a, by_key);
  simt::AddProduct(by_key, tile.content_by_query[0], tile.content_by_query[1], of_keys);
  simt::AddProduct(a, simt::Transposed(keys[0]), simt::Transposed(keys[1]), of_query.content);
  if constexpr (kRelative) {
    const BFloat16* matrices =
        relative.sinusoids + (kChunk * c + lane % 16) * kSinusoidStride + lane / 16 * 8;
    LENGTHWISE_UNROLL
    for (int j = 0; j < 4; ++j) {
      uint32_t b[4];
      simt::LoadMatrices<4, true>(matrices + 16 * j, b);
      simt::AddProduct(a, b[0], b[1], of_query.position[2 * j]);
      simt::AddProduct(a, b[2], b[3], of_query.position[2 * j + 1]);
    }
  }
}

// From the gradient of rotated queries, without the factor 1 / sqrt(8), to those of q + w and W_R,
// of whose sixteen features j a result [16, 8] is `of_projection(j)`.
template <typename Projection>
LENGTHWISE_DEVICE void DifferentiateProjection(const TensorCall& call, const TensorPlace& place,
                                               const BFloat16* rows, const RelativeRows& relative,
                                               int i0, float (&position)[8][4],
                                               float (&of_biased)[4],
                                               const Projection& of_projection) {
  RotateRows(relative.sinusoids + i0 * kSinusoidStride, place, true, position);
  uint32_t columns[2][4], biased[2];
  BringProjection(relative, place, columns);
  BringBiased(rows + i0 * kPartsStride, BiasOf(call, place, call.inputs.position_bias), place,
              biased);
  const uint32_t by_query[2] = {simt::Transposed(biased[0]), simt::Transposed(biased[1])};
  LENGTHWISE_UNROLL
  for (int j = 0; j < 4; ++j) {
    uint32_t a[4], by_feature[4];
    AsOperand(position[2 * j], position[2 * j + 1], a);
    const uint32_t(&two)[4] = columns[j / 2];
    simt::AddProduct(a, simt::Transposed(two[j % 2 * 2]), simt::Transposed(two[j % 2 * 2 + 1]),
                     of_biased);
    Transpose(a, by_feature);
    of_projection(
        j, [&](float(&sum)[4]) { simt::AddProduct(by_feature, by_query[0], by_query[1], sum); });
  }
}

// Blocks that a multiprocessor has registers for. With four, which leave a thread 128 registers, it
// took as long on an H200.
constexpr int kBackwardBlocks = 3;

template <bool kRelative>
LENGTHWISE_KERNEL_FOR(kTensorThreads, kBackwardBlocks)
void TensorBackwardKernel(TensorCall call) {
  const TensorPlace place(call);
  const int tokens = place.tokens, chunks = place.chunks, capacity = chunks * kChunk;
  simt::SharedArrays arrays;
  BFloat16* rows = TakeRows(arrays, capacity, kPartsStride);
  BFloat16* gradients = TakeRows(arrays, capacity, kGradientStride);
  float* numbers = arrays.Take(2 * kBlockHeads * capacity);
  const float* of_head = numbers + 2 * place.warp * capacity;
  RelativeRows relative = {};
  if constexpr (kRelative) relative = StageRelativeRows(call, place, capacity, arrays);
  // The warp's sums of keys, values and W_R.
  const int floats = FloatsOfSums(chunks, kRelative);
  float* const sums = arrays.Take(kBlockHeads * floats) + place.warp * floats;
  float* const projection_sums = sums + 2 * capacity * kHeadSize;
  float content_sums[2] = {0, 0}, position_sums[2] = {0, 0};
  const float* rotation = call.inputs.rotation;
  if (rotation != nullptr) rotation += place.p * tokens * kHeadSize;

  for (int64_t sequence = place.first_sequence; sequence < place.end_sequence; ++sequence) {
    const bool first_sequence = sequence == place.first_sequence;
    StageGradients(call, place, sequence, capacity, gradients, numbers);
    StageQkv(call, place, sequence, rows);
    simt::Barrier();
    for (int i0 = 0; i0 < tokens; i0 += kChunk) {
      const QueryTile<kRelative> tile =
          BringTile<kRelative>(call, place, rows, relative, gradients, of_head, i0);
      QueryGradients<kRelative> of_query;
      for (int c = 0; c < chunks; ++c) {
        float* const of_keys = sums + c * kChunk * kHeadSize;
        float* const of_values = of_keys + capacity * kHeadSize;
        float key_sum[4] = {}, value_sum[4] = {};
        if (i0 > 0) {
          LoadResult(of_keys, place, key_sum);
          LoadResult(of_values, place, value_sum);
        }
        DifferentiateChunk(call, place, rows, relative, tile, c, first_sequence, of_query, key_sum,
                           value_sum);
        StoreResult(key_sum, place, of_keys);
        StoreResult(value_sum, place, of_values);
      }
      float of_biased[4] = {};
      if constexpr (kRelative) {
        DifferentiateProjection(call, place, rows, relative, i0, of_query.position, of_biased,
                                [&](int j, const auto& add) {
                                  float* const at = projection_sums + j * kChunk * kHeadSize;
                                  float sum[4] = {};
                                  if (!first_sequence || i0 > 0) LoadResult(at, place, sum);
                                  add(sum);
                                  StoreResult(sum, place, at);
                                });
      }
      LENGTHWISE_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int token = i0 + place.g + 8 * r;
        float pair[2];
        LENGTHWISE_UNROLL
        for (int k = 0; k < 2; ++k) {
          const float content = kScale * of_query.content[2 * r + k];
          const float position = kScale * of_biased[2 * r + k];
          content_sums[k] += content;
          position_sums[k] += position;
          pair[k] = content + position;
        }
        if (rotation != nullptr && token < tokens) {
          TurnBack(rotation + token * kHeadSize, place.t, pair);
        }
        // In place of the queries, which nothing reads any more.
        PutTwo(pair[0], pair[1],
               rows + token * kPartsStride + place.warp * kHeadSize + 2 * place.t);
      }
    }
    // Gradients take the places of keys and values, which lanes read for each other.
    simt::WarpBarrier();
    for (int c = 0; c < chunks; ++c) {
      float key_sum[4], value_sum[4];
      LoadResult(sums + c * kChunk * kHeadSize, place, key_sum);
      LoadResult(sums + (capacity + c * kChunk) * kHeadSize, place, value_sum);
      LENGTHWISE_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int token = kChunk * c + place.g + 8 * r;
        float pair[2] = {kScale * key_sum[2 * r], kScale * key_sum[2 * r + 1]};
        if (rotation != nullptr && token < tokens) {
          TurnBack(rotation + token * kHeadSize, place.t, pair);
        }
        BFloat16* row = rows + token * kPartsStride + place.warp * kHeadSize + 2 * place.t;
        PutTwo(pair[0], pair[1], row + kBlockHeads * kHeadSize);
        PutTwo(value_sum[2 * r], value_sum[2 * r + 1], row + 2 * kBlockHeads * kHeadSize);
      }
    }
    simt::Barrier();
    WriteVectors<3, kBlockHeads, kPartsStride>(rows, tokens,
                                               call.qkv_gradient + place.Row(sequence, 3));
    simt::Barrier();
  }
  if constexpr (kRelative) {
    float* part = call.projection_parts + place.group * kModel * kModel + place.h * kHeadSize;
    LENGTHWISE_UNROLL
    for (int j = 0; j < 4; ++j) {
      float sum[4];
      LoadResult(projection_sums + j * kChunk * kHeadSize, place, sum);
      LENGTHWISE_UNROLL
      for (int k = 0; k < 4; ++k) {
        part[(16 * j + place.g + k / 2 * 8) * kModel + 2 * place.t + k % 2] = kScale * sum[k];
      }
    }
    // Over the rows of a head: lanes with the same t.
    LENGTHWISE_UNROLL
    for (int mask = 4; mask < simt::kWarp; mask *= 2) {
      simt::AddOther(mask, content_sums);
      simt::AddOther(mask, position_sums);
    }
    if (place.g == 0) {
      LENGTHWISE_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int64_t at = place.group * kModel + place.h * kHeadSize + 2 * place.t + k;
        call.content_parts[at] = content_sums[k];
        call.position_parts[at] = position_sums[k];
      }
    }
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_BACKWARD_INL_H_
