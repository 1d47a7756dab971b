#include "models/encodings/sinusoids.h"

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/pow.h"
#include "ATen/ops/stack.h"

namespace lengthwise::models {

at::Tensor Sinusoids(const at::Tensor& positions, int64_t d, at::ScalarType dtype) {
  const auto options = positions.options().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, d, 2, options).div(-static_cast<double>(d));
  const at::Tensor frequencies = at::pow(10000.0, exponents);
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(-1).mul(frequencies);
  return at::cat({angles.sin(), angles.cos()}, -1).to(dtype);
}

at::Tensor InterleavedSinusoids(const at::Tensor& positions, int64_t d, at::ScalarType dtype) {
  return Sinusoids(positions, d, dtype).unflatten(-1, {2, d / 2}).transpose(-1, -2).flatten(-2);
}

at::Tensor SinusoidsOfDifferences(const at::Tensor& sinusoids, int64_t first, int64_t count) {
  const int64_t half = sinusoids.size(-1) / 2;
  const at::Tensor columns = sinusoids.unsqueeze(1);                       // [P, 1, n, d]
  const at::Tensor rows = sinusoids.narrow(1, first, count).unsqueeze(2);  // [P, count, 1, d]
  const at::Tensor sin_j = columns.narrow(-1, 0, half), cos_j = columns.narrow(-1, half, half);
  const at::Tensor sin_i = rows.narrow(-1, 0, half), cos_i = rows.narrow(-1, half, half);
  return at::cat({sin_j.mul(cos_i).sub_(cos_j.mul(sin_i)), cos_j.mul(cos_i).add_(sin_j.mul(sin_i))},
                 -1);
}

at::Tensor TurnPairs(const at::Tensor& features, const at::Tensor& sinusoids) {
  const int64_t half = sinusoids.size(-1) / 2;
  const at::Tensor by_head = sinusoids.unsqueeze(1).unsqueeze(1);
  const at::Tensor sin = by_head.narrow(-1, 0, half), cos = by_head.narrow(-1, half, half);
  const at::Tensor pairs = features.unflatten(-1, {half, 2});
  const at::Tensor even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
  return at::stack({even.mul(cos).sub(odd.mul(sin)), odd.mul(cos).add(even.mul(sin))}, -1)
      .flatten(-2)
      .to(features.scalar_type());
}

}  // namespace lengthwise::models
