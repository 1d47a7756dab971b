#include "models/layers/dropout.h"

#include <cmath>

#include "ATen/ops/empty.h"

namespace lengthwise::models {
namespace {

constexpr int kSequenceBits = 22;

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

}  // namespace lengthwise::models
