#include "models/layers/dropout.h"

#include <algorithm>
#include <cmath>

#include "ATen/ops/empty.h"
#include "absl/types/span.h"
#include "random/stream.h"

namespace lengthwise::models {
namespace {

constexpr int kSequenceBits = 22;

// Returns standard normal numbers [seeds, B, n, d].
at::Tensor Draw(absl::Span<const uint64_t> seeds, const DropoutNumbers& numbers,
                at::IntArrayRef embeddings) {
  const int64_t sequences = embeddings[1], tokens = embeddings[2], features = embeddings[3];
  at::Tensor noise =
      at::empty({static_cast<int64_t>(seeds.size()), sequences, tokens, features}, at::kDouble);
  auto* number = noise.mutable_data_ptr<double>();
  for (const uint64_t seed : seeds) {
    for (int64_t b = 0; b < sequences; ++b) {
      random::Stream stream(seed, random::Purpose::kEmbeddingNoise, numbers.step,
                            static_cast<uint32_t>(numbers.first_sequence + b));
      for (int64_t i = 0; i < tokens * features; ++i) *number++ = stream.NextNormal();
    }
  }
  return noise;
}

}  // namespace

at::Tensor Dropout(const at::Tensor& features, double rate, uint32_t site,
                   const DropoutNumbers& numbers) {
  at::Tensor kept = at::empty(features.sizes(), at::kByte);
  auto* mask = kept.mutable_data_ptr<uint8_t>();
  const int64_t numbers_per_sequence = features.size(2) * features.size(3);
  const auto threshold = static_cast<uint32_t>(std::ldexp(rate, 32));
  for (const uint64_t seed : numbers.seeds) {
    for (int64_t b = 0; b < features.size(1); ++b) {
      const auto sequence = static_cast<uint32_t>(numbers.first_sequence + b);
      random::Stream stream(seed, numbers.purpose, numbers.step,
                            (site << kSequenceBits) | sequence);
      for (int64_t i = 0; i < numbers_per_sequence; ++i) {
        *mask++ = stream.NextUint32() >= threshold;
      }
    }
  }
  return features.mul(kept.to(features.device()).to(features.scalar_type()).mul_(1 / (1 - rate)));
}

at::Tensor AddEmbeddingNoise(const at::Tensor& embeddings, const DropoutNumbers* numbers) {
  if (numbers == nullptr || numbers->embedding_noise == 0) return embeddings;
  absl::Span<const uint64_t> seeds = numbers->seeds;
  // At evaluation all members share the seed, so one draw is enough.
  const bool same =
      std::all_of(seeds.begin(), seeds.end(), [&](uint64_t seed) { return seed == seeds.front(); });
  const at::Tensor noise = Draw(same ? seeds.first(1) : seeds, *numbers, embeddings.sizes());
  return embeddings.add(
      noise.mul(numbers->embedding_noise).to(embeddings.scalar_type()).to(embeddings.device()));
}

}  // namespace lengthwise::models
