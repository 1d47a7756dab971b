// Shared parts of the kernels of tensor_attention_cuda.h. A block takes half of the heads of some
// sequences, one sequence after another; each of its warps has one head, for all tokens.
//
// Logits are kept without the factor 1 / sqrt(dh), so that queries are not rounded once more; it
// comes with log2 e, which makes probabilities powers of two. Chunks are 16 tokens: the rows of a
// tile of queries, or the depth of a product with probabilities. Tokens behind the last one are
// zeros.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_INL_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/bfloat16.h"
#include "models/kernels/simt.h"
#include "models/kernels/simt_matrix.h"
#include "models/kernels/tensor_attention_cuda.h"

namespace lengthwise::kernels {

constexpr int kChunk = 16;
constexpr int kBlockHeads = 4;
constexpr int kTensorThreads = kBlockHeads * simt::kWarp;
constexpr int kModel = kTensorModel, kHeadSize = kTensorHeadSize;

// Numbers from row to row in shared memory: odd multiples of 16 bytes, so that eight rows of a
// matrix lie in different banks.
constexpr int kSinusoidStride = kModel + 8;
constexpr int kPartsStride = 3 * kBlockHeads * kHeadSize + 8;  // queries, keys, values
constexpr int kGradientStride = kBlockHeads * kHeadSize + 8;

constexpr float kScale = 0.353553391F, kUnscale = 2.82842712F;  // 1 / sqrt(8), sqrt(8)
constexpr float kExponent = 1.44269504F * kScale;

struct TensorCall {
  TensorAttentionInputs inputs;
  int block_sequences;  // that a block takes
  int groups;           // blocks with the same heads of a member
  float* log_sum_exp;
  BFloat16* output;  // of the forward pass
  // Of the backward pass. Parts are [P, groups, ...]; null: not wanted.
  const BFloat16* known_output;
  const BFloat16* output_gradient;
  BFloat16* qkv_gradient;
  float* projection_parts;  // [64, 64]
  float* content_parts;     // [64]
  float* position_parts;    // [64]
  float* additive_parts;    // [H, n, n]
};

// What a thread works on.
struct TensorPlace {
  LENGTHWISE_DEVICE explicit TensorPlace(const TensorCall& call)
      : tokens(static_cast<int>(call.inputs.shape.tokens)),
        chunks((tokens + kChunk - 1) / kChunk),
        warp(simt::Thread() / simt::kWarp),
        g(simt::Lane() / 4),
        t(simt::Lane() % 4) {
    constexpr int kHalves = kTensorHeads / kBlockHeads;
    // Halves follow each other, because they read the same lines of memory.
    const int half = static_cast<int>(simt::Block() % kHalves);
    group = simt::Block() / kHalves;
    p = group / call.groups;
    first_head = half * kBlockHeads;
    h = first_head + warp;
    const int64_t sequences = call.inputs.shape.sequences;
    const int64_t first = group % call.groups * call.block_sequences;
    const int64_t rest = sequences - first;
    first_sequence = p * sequences + first;
    end_sequence = first_sequence + (rest < call.block_sequences ? rest : call.block_sequences);
  }

  // Queries, keys and values of the block's first head, or its vectors in an array of one part.
  LENGTHWISE_DEVICE int64_t Row(int64_t sequence, int parts) const {
    return sequence * tokens * parts * kModel + first_head * kHeadSize;
  }

  int tokens, chunks, warp;
  int g, t;  // see simt_matrix.h
  int64_t p;
  int64_t group;  // among all of [P, groups]
  int first_head, h;
  int64_t first_sequence, end_sequence;  // in [P B]
};

// Turns a head's vector by a token's angles: `angles` are four sines and four cosines.
LENGTHWISE_DEVICE void Turn(const float* angles, Eight& vector) {
  LENGTHWISE_UNROLL
  for (int c = 0; c < 4; ++c) {
    const float sine = angles[c], cosine = angles[4 + c];
    const float even = ToFloat(vector.x[2 * c]), odd = ToFloat(vector.x[2 * c + 1]);
    vector.x[2 * c] = FromFloat<BFloat16>(even * cosine - odd * sine);
    vector.x[2 * c + 1] = FromFloat<BFloat16>(odd * cosine + even * sine);
  }
}

// Turns the gradient of pair `c` of a turned vector back.
LENGTHWISE_DEVICE void TurnBack(const float* angles, int c, float (&pair)[2]) {
  const float sine = angles[c], cosine = angles[4 + c], even = pair[0], odd = pair[1];
  pair[0] = even * cosine + odd * sine;
  pair[1] = odd * cosine - even * sine;
}

// Begins to copy the vectors of kHeads heads, of each of kParts parts of 64, to shared memory;
// zeros behind the last token.
template <int kParts, int kHeads, int kStride>
LENGTHWISE_DEVICE void StageVectors(const BFloat16* from, int tokens, int capacity, BFloat16* to) {
  constexpr int kVectors = kParts * kHeads;
  for (int i = simt::Thread(); i < capacity * kVectors; i += kTensorThreads) {
    const int row = i / kVectors, vector = i % kVectors, part = vector / kHeads;
    const bool there = row < tokens;
    simt::StartCopy(
        from + ((there ? row : 0) * kParts + part) * kModel + vector % kHeads * kHeadSize, there,
        to + row * kStride + vector * kHeadSize);
  }
}

template <int kParts, int kHeads, int kStride>
LENGTHWISE_DEVICE void WriteVectors(const BFloat16* from, int tokens, BFloat16* to) {
  constexpr int kVectors = kParts * kHeads;
  for (int i = simt::Thread(); i < tokens * kVectors; i += kTensorThreads) {
    const int row = i / kVectors, vector = i % kVectors, part = vector / kHeads;
    simt::Store(simt::Load<8>(from + row * kStride + vector * kHeadSize),
                to + (row * kParts + part) * kModel + vector % kHeads * kHeadSize);
  }
}

// Copies queries, keys and values to shared memory, and waits for all that the thread began to
// copy.
LENGTHWISE_DEVICE void StageQkv(const TensorCall& call, const TensorPlace& place, int64_t sequence,
                                BFloat16* to) {
  constexpr int kVectors = 3 * kBlockHeads;
  StageVectors<3, kBlockHeads, kPartsStride>(call.inputs.qkv + place.Row(sequence, 3), place.tokens,
                                             place.chunks * kChunk, to);
  simt::WaitForCopies();
  if (call.inputs.rotation == nullptr) return;
  const float* rotation = call.inputs.rotation + place.p * place.tokens * kHeadSize;
  // The same thread turns queries and keys that copied them.
  for (int i = simt::Thread(); i < place.tokens * kVectors; i += kTensorThreads) {
    const int row = i / kVectors, vector = i % kVectors;
    if (vector >= 2 * kBlockHeads) continue;
    BFloat16* const at = to + row * kPartsStride + vector * kHeadSize;
    Eight eight = simt::Load<8>(at);
    Turn(rotation + row * kHeadSize, eight);
    simt::Store(eight, at);
  }
}

// What relative positions bring to shared memory, for all sequences of a block. It is there once
// the first sequence is.
struct RelativeRows {
  BFloat16* sinusoids;   // [capacity, 64]
  BFloat16* projection;  // [64, 32]: the columns of W_R for the block's heads
};
LENGTHWISE_EVERYWHERE constexpr int FloatsOfRelativeRows(int capacity) {
  return FloatsOfRows(capacity, kSinusoidStride) + FloatsOfRows(kModel, kGradientStride);
}
LENGTHWISE_DEVICE RelativeRows StageRelativeRows(const TensorCall& call, const TensorPlace& place,
                                                 int capacity, simt::SharedArrays& arrays) {
  const RelativeRows relative = {TakeRows(arrays, capacity, kSinusoidStride),
                                 TakeRows(arrays, kModel, kGradientStride)};
  StageVectors<1, kTensorHeads, kSinusoidStride>(
      call.inputs.sinusoids + place.p * place.tokens * kModel, place.tokens, capacity,
      relative.sinusoids);
  StageVectors<1, kBlockHeads, kGradientStride>(
      call.inputs.projection + place.p * kModel * kModel + place.first_head * kHeadSize, kModel,
      kModel, relative.projection);
  return relative;
}

// The head's columns of W_R as the second operand of [.., 8] [8, 64], read anew for each tile to
// keep registers free.
LENGTHWISE_DEVICE void BringProjection(const RelativeRows& relative, const TensorPlace& place,
                                       uint32_t (&columns)[2][4]) {
  LENGTHWISE_UNROLL
  for (int half = 0; half < 2; ++half) {
    simt::LoadMatrices<4, false>(relative.projection +
                                     (kModel / 2 * half + simt::Lane()) * kGradientStride +
                                     place.warp * kHeadSize,
                                 columns[half]);
  }
}

// Rotates pairs of sine and cosine features, eight results [16, 8], by the rows' positions, or back
// by their opposites. `sinusoids` are the first row's.
LENGTHWISE_DEVICE void RotateRows(const BFloat16* sinusoids, const TensorPlace& place, bool back,
                                  float (&d)[8][4]) {
  LENGTHWISE_UNROLL
  for (int n = 0; n < 4; ++n) {
    LENGTHWISE_UNROLL
    for (int r = 0; r < 2; ++r) {
      const BFloat16* row = sinusoids + (place.g + 8 * r) * kSinusoidStride + 8 * n + 2 * place.t;
      const uint32_t sines = Two(row), cosines = Two(row + kModel / 2);
      LENGTHWISE_UNROLL
      for (int k = 0; k < 2; ++k) {
        const float cosine = k == 0 ? simt::Low(cosines) : simt::High(cosines);
        const float forwards = k == 0 ? simt::Low(sines) : simt::High(sines);
        const float sine = back ? -forwards : forwards;
        float& of_sine = d[n][2 * r + k];
        float& of_cosine = d[n + 4][2 * r + k];
        const float before = of_sine;
        of_sine = before * cosine + of_cosine * sine;
        of_cosine = of_cosine * cosine - before * sine;
      }
    }
  }
}

// Sixteen queries as first operands of the logits' product.
template <bool kRelative>
struct Queries {
  uint32_t content[2];      // q + u: depth 8
  uint32_t position[4][4];  // q + w, projected and rotated: depth 64
};
template <>
struct Queries<false> {
  uint32_t content[2];
};

// q + bias of the rows that begin at `rows`.
LENGTHWISE_DEVICE void BringBiased(const BFloat16* rows, const float* bias,
                                   const TensorPlace& place, uint32_t (&biased)[2]) {
  const float first = bias == nullptr ? 0 : bias[2 * place.t];
  const float second = bias == nullptr ? 0 : bias[2 * place.t + 1];
  LENGTHWISE_UNROLL
  for (int r = 0; r < 2; ++r) {
    const uint32_t x =
        Two(rows + (place.g + 8 * r) * kPartsStride + place.warp * kHeadSize + 2 * place.t);
    biased[r] = simt::Pack(simt::Low(x) + first, simt::High(x) + second);
  }
}

// A head's u or w.
LENGTHWISE_DEVICE const float* BiasOf(const TensorCall& call, const TensorPlace& place,
                                      const float* biases) {
  return biases + place.p * call.inputs.bias_stride + place.h * kHeadSize;
}

template <bool kRelative>
LENGTHWISE_DEVICE Queries<kRelative> BringQueries(const TensorCall& call, const TensorPlace& place,
                                                  const BFloat16* rows,
                                                  const RelativeRows& relative, int i0) {
  rows += i0 * kPartsStride;
  Queries<kRelative> queries;
  if constexpr (kRelative) {
    BringBiased(rows, BiasOf(call, place, call.inputs.content_bias), place, queries.content);
    uint32_t biased[2], columns[2][4];
    BringBiased(rows, BiasOf(call, place, call.inputs.position_bias), place, biased);
    BringProjection(relative, place, columns);
    float d[8][4] = {};
    LENGTHWISE_UNROLL
    for (int n = 0; n < 8; ++n) simt::AddProduct(biased, columns[n / 4][n % 4], d[n]);
    RotateRows(relative.sinusoids + i0 * kSinusoidStride, place, false, d);
    LENGTHWISE_UNROLL
    for (int j = 0; j < 4; ++j) AsOperand(d[2 * j], d[2 * j + 1], queries.position[j]);
  } else {
    BringBiased(rows, nullptr, place, queries.content);
  }
  return queries;
}

// The head's additive term, or null.
LENGTHWISE_DEVICE const float* AdditiveOf(const TensorCall& call, const TensorPlace& place) {
  const TensorAttentionInputs& inputs = call.inputs;
  if (inputs.additive == nullptr) return nullptr;
  return inputs.additive + ((inputs.additive_shared ? 0 : place.p) * kTensorHeads + place.h) *
                               place.tokens * place.tokens;
}

// Logits, times sqrt(8), of sixteen queries from token i0 on and eight keys from j0 on. `key` is
// the second operand [8, 8] of their content.
template <bool kRelative>
LENGTHWISE_DEVICE void AddLogits(const Queries<kRelative>& queries, uint32_t key,
                                 const RelativeRows& relative, const float* additive,
                                 const TensorPlace& place, int i0, int j0, float (&x)[4]) {
  simt::AddProduct(queries.content, key, x);
  if constexpr (kRelative) {
    const int lane = simt::Lane();
    const BFloat16* row = relative.sinusoids + (j0 + lane % 8) * kSinusoidStride + lane / 8 * 8;
    LENGTHWISE_UNROLL
    for (int half = 0; half < 2; ++half) {
      uint32_t b[4];
      simt::LoadMatrices<4, false>(row + kModel / 2 * half, b);
      simt::AddProduct(queries.position[2 * half], b[0], b[1], x);
      simt::AddProduct(queries.position[2 * half + 1], b[2], b[3], x);
    }
  } else if (additive != nullptr) {
    LENGTHWISE_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int i = i0 + place.g + k / 2 * 8, j = j0 + 2 * place.t + k % 2;
      if (i < place.tokens && j < place.tokens) x[k] += kUnscale * additive[i * place.tokens + j];
    }
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_INL_H_
