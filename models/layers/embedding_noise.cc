#include "models/layers/embedding_noise.h"

#include <algorithm>

#include "ATen/ops/empty.h"
#include "absl/types/span.h"
#include "random/stream.h"

namespace lengthwise::models {
namespace {

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
