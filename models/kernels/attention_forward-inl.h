// The forward kernel of attention_cuda.h. A thread owns a query and goes through the keys, kStep at
// a time, with the soft-max's maximum and sum so far (Milakov and Gimelshein 2018; Dao et al.
// 2022).
#ifndef LENGTHWISE_MODELS_KERNELS_ATTENTION_FORWARD_INL_H_
#define LENGTHWISE_MODELS_KERNELS_ATTENTION_FORWARD_INL_H_

#include <cmath>
#include <cstdint>

#include "models/kernels/attention_kernels-inl.h"

namespace lengthwise::kernels {

template <typename T>
struct ForwardCall {
  AttentionInputsOf<T> inputs;
  HeadVectors<T> output;
  float* log_sum_exp;  // or null
  TokenTiles tiles;
  float scale;
};

// Tiles of keys in shared memory, through which a block iterates. Common to the forward and the
// backward pass of a query.
template <typename T, typename Head, bool kRelative>
class KeyTiles {
 public:
  LENGTHWISE_DEVICE KeyTiles(const AttentionInputsOf<T>& inputs, const TokenTiles& tiles,
                             float scale, simt::SharedArrays& shared)
      : inputs_(inputs), tiles_(tiles), place_(inputs.shape, tiles, inputs.shape.queries) {
    const int64_t p = place_.p, h = place_.h;
    const int tokens = tiles.sequences * tiles.others;
    float* own = shared.Take(tiles.sequences * tiles.own * Head::kStride);
    keys_ = shared.Take(tokens * Head::kStride);
    values_ = shared.Take(tokens * Head::kStride);
    if (kRelative) {
      const int64_t floats =
          RelativeTileFloats(inputs.terms.toeplitz, tiles.own, tiles.others, Head::kStride);
      relative_ = shared.Take(static_cast<int>(floats));
    }
    if (inputs.terms.additive != nullptr) {
      additive_ = shared.Take(static_cast<int>(AdditiveTileFloats(tiles.own, tiles.others)));
    }
    key_source_ = SourceOf(inputs.shape, inputs.keys, p, h, place_.b, inputs.terms.rotation);
    value_source_ = SourceOf(inputs.shape, inputs.values, p, h, place_.b, nullptr);

    // The thread's own query as it meets keys and R.
    HeadSource<T> queries =
        SourceOf(inputs.shape, inputs.queries, p, h, place_.b, inputs.terms.rotation);
    queries.scale = scale;
    const int64_t bias = BiasOf(inputs.shape, inputs.terms, p, h);
    if (kRelative) queries.bias = inputs.terms.content_bias + bias;
    place_.BringOwn(queries, tiles.own, own, content_);
    if (kRelative) {
      queries.bias = inputs.terms.position_bias + bias;
      place_.BringOwn(queries, tiles.own, own, position_);
    }
    own_ = own;
    seen_ = Seen(inputs.shape, inputs.terms, query());
  }

  LENGTHWISE_DEVICE const TokenPlace<Head>& place() const { return place_; }
  // The query's vector of another source.
  LENGTHWISE_DEVICE void BringOwn(const HeadSource<T>& source, float (&x)[Head::kWidth]) const {
    place_.BringOwn(source, tiles_.own, own_, x);
  }
  LENGTHWISE_DEVICE int64_t query() const { return place_.first + place_.own; }
  // Keys that any of the block's queries sees.
  LENGTHWISE_DEVICE int64_t keys() const {
    return Seen(inputs_.shape, inputs_.terms, place_.first + place_.count - 1);
  }

  // Brings the keys from j0 on. How many of them there are to go through, a multiple of kStep.
  LENGTHWISE_DEVICE int Bring(int64_t j0) {
    const AttentionShape& shape = inputs_.shape;
    const int count = Smaller(tiles_.others, keys() - j0);
    first_key_ = j0;
    // The previous tile may still be in use.
    simt::Barrier();
    StageVectors<Head>(key_source_, place_.sequences, j0, count, tiles_.others, keys_);
    StageVectors<Head>(value_source_, place_.sequences, j0, count, tiles_.others, values_);
    if (kRelative) {
      relative_tile_ = StageRelative<Head>(
          shape, RelativeOf(shape, inputs_.terms, place_.p, place_.h), inputs_.terms.toeplitz,
          place_.first, j0, tiles_.own, tiles_.others, relative_);
    }
    if (additive_ != nullptr) {
      StageAdditive(shape, AdditiveOf(shape, inputs_.terms, place_.p, place_.h), place_.first, j0,
                    tiles_.own, tiles_.others, additive_);
    }
    simt::Barrier();
    return (count + kStep - 1) / kStep * kStep;
  }

  // Vectors of the tile's j-th key.
  LENGTHWISE_DEVICE const float* Key(int j) const { return keys_ + Place(j); }
  LENGTHWISE_DEVICE const float* Value(int j) const { return values_ + Place(j); }
  LENGTHWISE_DEVICE const float* Relative(int j) const {
    return relative_tile_.data + place_.own * relative_tile_.row + j * Head::kStride +
           place_.feature;
  }

  // This lane's part of the logit, before AddOverLanes.
  LENGTHWISE_DEVICE float LogitPart(int j) const {
    float sum = Dot(content_, Key(j));
    if (kRelative) sum += Dot(position_, Relative(j));
    return sum;
  }
  // From the sum of the lanes' parts.
  LENGTHWISE_DEVICE float Logit(int j, float sum) const {
    if (first_key_ + j >= seen_) return -INFINITY;
    if (additive_ == nullptr) return sum;
    return sum + additive_[place_.own * (tiles_.others + 1) + j];
  }

 private:
  LENGTHWISE_DEVICE int Place(int j) const {
    return (place_.g * tiles_.others + j) * Head::kStride + place_.feature;
  }

  const AttentionInputsOf<T>& inputs_;
  const TokenTiles& tiles_;
  const TokenPlace<Head> place_;
  HeadSource<T> key_source_, value_source_;
  float* own_;
  float* keys_;
  float* values_;
  float* relative_ = nullptr;
  float* additive_ = nullptr;
  RelativeTile relative_tile_ = {};
  float content_[Head::kWidth];
  float position_[Head::kWidth];
  int64_t seen_;
  int64_t first_key_ = 0;
};

template <typename T, typename Head, bool kRelative>
LENGTHWISE_KERNEL void ForwardKernel(ForwardCall<T> call) {
  simt::SharedArrays shared;
  KeyTiles<T, Head, kRelative> keys(call.inputs, call.tiles, call.scale, shared);
  const TokenPlace<Head>& place = keys.place();
  const AttentionShape& shape = call.inputs.shape;

  // Below every number, and itself one: where a term is minus infinity, exp(-inf - maximum) is 0.
  float maximum = -3.0e38F;
  float sum = 0;
  float mixed[Head::kWidth] = {};
  for (int64_t j0 = 0; j0 < keys.keys(); j0 += call.tiles.others) {
    const int count = keys.Bring(j0);
    for (int j = 0; j < count; j += kStep) {
      float logits[kStep];
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) logits[k] = keys.LogitPart(j + k);
      AddOverLanes<Head>(logits);
      float largest = maximum;
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        logits[k] = keys.Logit(j + k, logits[k]);
        // A logit that is not a number stays one, and so do the sum and the output.
        largest = logits[k] > largest ? logits[k] : largest;
      }
      if (largest > maximum) {
        const float shrink = expf(maximum - largest);
        maximum = largest;
        sum *= shrink;
        LENGTHWISE_UNROLL
        for (int c = 0; c < Head::kWidth; ++c) mixed[c] *= shrink;
      }
      LENGTHWISE_UNROLL
      for (int k = 0; k < kStep; ++k) {
        const float weight = expf(logits[k] - maximum);
        sum += weight;
        AddWeighted(weight, keys.Value(j + k), mixed);
      }
    }
  }
  if (!place.used) return;
  LENGTHWISE_UNROLL
  for (int c = 0; c < Head::kWidth; ++c) mixed[c] /= sum;
  const int64_t query = keys.query();
  StoreFeatures(mixed, place.feature, static_cast<int>(shape.head_size),
                call.output.data + place.p * call.output.member + place.h * call.output.head +
                    (place.b + place.g) * call.output.sequence + query * call.output.token);
  if (call.log_sum_exp != nullptr && place.feature == 0) {
    call.log_sum_exp[place.Item(shape, place.g) * shape.queries + query] = maximum + logf(sum);
  }
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ATTENTION_FORWARD_INL_H_
