// The kernels of one pass in their order. `Launcher` is that of simt.h.
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_LAUNCHES_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_LAUNCHES_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/attention_backward-inl.h"
#include "models/kernels/attention_cuda.h"
#include "models/kernels/attention_forward-inl.h"
#include "models/kernels/attention_terms_backward-inl.h"
#include "models/kernels/attention_tiles.h"
#include "models/kernels/sum_parts-inl.h"

namespace lengthwise::kernels {

// Tiles of the backward pass's kernels, and offsets into its workspace in floats.
struct BackwardPlan {
  TokenTiles query_tiles, key_tiles;
  PairTiles pair_tiles;
  DiagonalTiles diagonal_tiles;
  int64_t content_bias = 0;
  int64_t position_bias = 0;
  int64_t relative = 0;
  int64_t relative_chunks = 0;
  int64_t additive = 0;
  int64_t size = 0;
};

inline BackwardPlan MakeBackwardPlan(const AttentionShape& shape, const AttentionTerms& terms) {
  BackwardPlan plan;
  WithHead(shape.head_size, [&](auto head) {
    using Head = decltype(head);
    plan.query_tiles = MakeTokenTiles<Head>(shape, terms, shape.queries, shape.keys, 2, 0);
    plan.key_tiles = MakeTokenTiles<Head>(shape, terms, shape.keys, shape.queries, 3, 2);
    plan.pair_tiles = MakePairTiles<Head>(shape);
    plan.diagonal_tiles = MakeDiagonalTiles<Head>(shape);
  });
  const int64_t heads = shape.members * shape.heads;
  int64_t next = heads * shape.sequences * shape.queries;  // deltas
  const auto take = [&](int64_t floats) {
    const int64_t place = next;
    next += floats;
    return place;
  };
  if (terms.relative != nullptr) {
    plan.content_bias = take(heads * plan.query_tiles.BlocksOfHead() * shape.head_size);
    plan.position_bias = take(heads * plan.query_tiles.BlocksOfHead() * shape.head_size);
    plan.relative_chunks = terms.toeplitz ? plan.diagonal_tiles.chunks : plan.pair_tiles.chunks;
    plan.relative =
        take(plan.relative_chunks == 1 ? 0
                                       : heads * plan.relative_chunks * shape.head_size *
                                             RelativePlaces(shape, terms.toeplitz));
  }
  if (terms.additive != nullptr && plan.pair_tiles.chunks > 1) {
    plan.additive = take(heads * plan.pair_tiles.chunks * shape.queries * shape.keys);
  }
  plan.size = next;
  return plan;
}

template <typename T, typename Launcher>
void LaunchForward(Launcher& launcher, const AttentionInputsOf<T>& inputs,
                   const HeadVectors<T>& output, float* log_sum_exp) {
  WithHead(inputs.shape.head_size, [&](auto head) {
    using Head = decltype(head);
    const AttentionShape& shape = inputs.shape;
    ForwardCall<T> call = {
        .inputs = inputs,
        .output = output,
        .log_sum_exp = log_sum_exp,
        .tiles = MakeTokenTiles<Head>(shape, inputs.terms, shape.queries, shape.keys, 2, 0),
        .scale = 1 / std::sqrt(static_cast<float>(shape.head_size))};
    launcher.Launch(inputs.terms.relative == nullptr ? &ForwardKernel<T, Head, false>
                                                     : &ForwardKernel<T, Head, true>,
                    shape.members * shape.heads * call.tiles.BlocksOfHead(), call.tiles.threads,
                    call.tiles.shared_bytes, call);
  });
}

template <typename T, typename Launcher>
void LaunchBackward(Launcher& launcher, const AttentionInputsOf<T>& inputs,
                    const HeadVectors<const T>& output, const HeadVectors<const T>& output_gradient,
                    const float* log_sum_exp, const AttentionGradientsOf<T>& gradients,
                    float* workspace) {
  const AttentionShape& shape = inputs.shape;
  const AttentionTerms& terms = inputs.terms;
  const BackwardPlan plan = MakeBackwardPlan(shape, terms);
  const int64_t heads = shape.members * shape.heads;
  const bool relative = terms.relative != nullptr;
  BackwardCall<T> call = {
      .inputs = inputs,
      .output = output,
      .output_gradient = output_gradient,
      .log_sum_exp = log_sum_exp,
      .gradients = gradients,
      .scale = 1 / std::sqrt(static_cast<float>(shape.head_size)),
      .deltas = workspace,
      .content_bias_parts = workspace + plan.content_bias,
      .position_bias_parts = workspace + plan.position_bias,
      // A chunk that is alone is the sum.
      .relative_parts = plan.relative_chunks == 1 ? gradients.relative : workspace + plan.relative,
      .additive_parts =
          plan.pair_tiles.chunks == 1 ? gradients.additive : workspace + plan.additive};
  if (gradients.relative == nullptr) call.relative_parts = nullptr;
  if (gradients.additive == nullptr) call.additive_parts = nullptr;

  const int64_t rows = heads * shape.sequences * shape.queries;
  launcher.Launch(&DeltaKernel<T>, DividedUp(rows, kDeltaThreads), kDeltaThreads, 0, call);
  WithHead(shape.head_size, [&](auto head) {
    using Head = decltype(head);
    const TokenTiles &queries = plan.query_tiles, &keys = plan.key_tiles;
    launcher.Launch(relative ? &QueryKernel<T, Head, true> : &QueryKernel<T, Head, false>,
                    heads * queries.BlocksOfHead(), queries.threads, queries.shared_bytes, call,
                    queries);
    launcher.Launch(relative ? &KeyKernel<T, Head, true> : &KeyKernel<T, Head, false>,
                    heads * keys.BlocksOfHead(), keys.threads, keys.shared_bytes, call, keys);
    const bool of_pairs =
        gradients.additive != nullptr || (gradients.relative != nullptr && !terms.toeplitz);
    if (of_pairs) {
      const PairTiles& tiles = plan.pair_tiles;
      launcher.Launch(relative ? &PairKernel<T, Head, true> : &PairKernel<T, Head, false>,
                      heads * tiles.query_tiles * tiles.key_tiles * tiles.chunks, tiles.threads,
                      tiles.shared_bytes, call, tiles);
    }
    if (gradients.relative != nullptr && terms.toeplitz) {
      const DiagonalTiles& tiles = plan.diagonal_tiles;
      launcher.Launch(&DiagonalKernel<T, Head>, heads * tiles.diagonal_tiles * tiles.chunks,
                      tiles.threads, tiles.shared_bytes, call, tiles);
    }
  });
  if (gradients.additive != nullptr && plan.pair_tiles.chunks > 1) {
    LaunchSum(launcher, call.additive_parts, heads, plan.pair_tiles.chunks,
              shape.queries * shape.keys, gradients.additive);
  }
  if (gradients.relative != nullptr && plan.relative_chunks > 1) {
    LaunchSum(launcher, call.relative_parts, heads, plan.relative_chunks,
              shape.head_size * RelativePlaces(shape, terms.toeplitz), gradients.relative);
  }
  if (relative && gradients.content_bias != nullptr) {
    LaunchSum(launcher, call.content_bias_parts, heads, plan.query_tiles.BlocksOfHead(),
              shape.head_size, gradients.content_bias);
  }
  if (relative && gradients.position_bias != nullptr) {
    LaunchSum(launcher, call.position_bias_parts, heads, plan.query_tiles.BlocksOfHead(),
              shape.head_size, gradients.position_bias);
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_LAUNCHES_H_
