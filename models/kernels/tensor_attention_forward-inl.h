// The forward pass of tensor_attention_cuda.h. Scores of sixteen queries and all keys stay in
// registers, so the number of chunks is a template parameter.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_FORWARD_INL_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_FORWARD_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/tensor_attention-inl.h"

namespace lengthwise::kernels {

// Bytes of shared memory of a block.
inline int64_t TensorForwardBytes(int chunks, bool relative) {
  const int rows = chunks * kChunk;
  return int64_t{4} *
         (FloatsOfRows(rows, kPartsStride) + (relative ? FloatsOfRelativeRows(rows) : 0));
}

// Blocks that a multiprocessor has registers for: the scores of long sequences take more.
constexpr int TensorForwardBlocks(int chunks) { return chunks <= 4 ? 4 : 3; }

template <int kChunks, bool kRelative>
LENGTHWISE_KERNEL_FOR(kTensorThreads, TensorForwardBlocks(kChunks))
void TensorForwardKernel(TensorCall call) {
  constexpr int kRows = kChunks * kChunk, kTiles = 2 * kChunks;
  const TensorPlace place(call);
  const int tokens = place.tokens, lane = simt::Lane();
  simt::SharedArrays arrays;
  BFloat16* rows = TakeRows(arrays, kRows, kPartsStride);
  RelativeRows relative = {};
  if constexpr (kRelative) relative = StageRelativeRows(call, place, kRows, arrays);
  const float* additive = AdditiveOf(call, place);
  for (int64_t sequence = place.first_sequence; sequence < place.end_sequence; ++sequence) {
    StageQkv(call, place, sequence, rows);
    simt::Barrier();
    uint32_t keys[kTiles], values[kTiles];
    LENGTHWISE_UNROLL
    for (int c = 0; c < kChunks; ++c) {
      const BFloat16* row = rows + (kChunk * c + lane % 16) * kPartsStride + place.warp * kHeadSize;
      uint32_t two[2];
      simt::LoadMatrices<2, false>(row + kBlockHeads * kHeadSize, two);
      keys[2 * c] = two[0];
      keys[2 * c + 1] = two[1];
      simt::LoadMatrices<2, true>(row + 2 * kBlockHeads * kHeadSize, two);
      values[2 * c] = two[0];
      values[2 * c + 1] = two[1];
    }
    for (int i0 = 0; i0 < tokens; i0 += kChunk) {
      const Queries<kRelative> queries = BringQueries<kRelative>(call, place, rows, relative, i0);
      float x[kTiles][4] = {};
      // Of the rows g and g + 8.
      float largest[2] = {-3.0e38F, -3.0e38F}, sums[2] = {0, 0};
      LENGTHWISE_UNROLL
      for (int n = 0; n < kTiles; ++n) {
        AddLogits(queries, keys[n], relative, additive, place, i0, 8 * n, x[n]);
        LENGTHWISE_UNROLL
        for (int k = 0; k < 4; ++k) {
          // Only the last chunk can have tokens that are not there.
          if (n >= kTiles - 2 && 8 * n + 2 * place.t + k % 2 >= tokens) x[n][k] = -INFINITY;
          largest[k / 2] = fmaxf(largest[k / 2], x[n][k]);
        }
      }
      LENGTHWISE_UNROLL
      for (int r = 0; r < 2; ++r) {
        largest[r] = fmaxf(largest[r], simt::OfOther(1, largest[r]));
        largest[r] = fmaxf(largest[r], simt::OfOther(2, largest[r]));
      }
      float mixed[4] = {};
      LENGTHWISE_UNROLL
      for (int c = 0; c < kChunks; ++c) {
        LENGTHWISE_UNROLL
        for (int k = 0; k < 8; ++k) {
          float& y = x[2 * c + k / 4][k % 4];
          y = simt::Exp2(kExponent * (y - largest[k % 4 / 2]));
          sums[k % 4 / 2] += y;
        }
        uint32_t a[4];
        AsOperand(x[2 * c], x[2 * c + 1], a);
        simt::AddProduct(a, values[2 * c], values[2 * c + 1], mixed);
      }
      simt::AddOther(1, sums);
      simt::AddOther(2, sums);
      LENGTHWISE_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int token = i0 + place.g + 8 * r;
        const float rest = 1 / sums[r];
        // In place of the queries, which nothing reads any more.
        PutTwo(mixed[2 * r] * rest, mixed[2 * r + 1] * rest,
               rows + token * kPartsStride + place.warp * kHeadSize + 2 * place.t);
        if (call.log_sum_exp != nullptr && place.t == 0 && token < tokens) {
          call.log_sum_exp[(sequence * kTensorHeads + place.h) * tokens + token] =
              kExponent * largest[r] + log2f(sums[r]);
        }
      }
    }
    simt::Barrier();
    WriteVectors<1, kBlockHeads, kPartsStride>(rows, tokens, call.output + place.Row(sequence, 1));
    simt::Barrier();
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_FORWARD_INL_H_
