#include "worker/evaluation/principal_components.h"

#include <algorithm>

#include "ATen/ops/linalg_eigh.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/zeros.h"

namespace lengthwise::worker::evaluation {

PrincipalComponents FitPrincipalComponents(const at::Tensor& points) {
  const at::Tensor exact = points.to(at::kDouble);
  const int64_t count = exact.size(0), d = exact.size(1);
  PrincipalComponents components;
  components.mean = exact.mean(0);
  components.directions = at::zeros({d, 2}, exact.options());

  const at::Tensor centred = exact.sub(components.mean);
  const at::Tensor covariance =
      at::mm(centred.t(), centred).div(static_cast<double>(std::max<int64_t>(count - 1, 1)));
  const double whole = covariance.trace().item<double>();
  const auto [variances, vectors] = at::linalg_eigh(covariance);  // ascending
  for (int64_t k = 0; k < std::min<int64_t>(d, 2); ++k) {
    const at::Tensor vector = vectors.select(1, d - 1 - k);
    const int64_t largest = vector.abs().argmax().item<int64_t>();
    const double sign = vector.select(0, largest).item<double>() < 0 ? -1 : 1;
    components.directions.select(1, k).copy_(vector.mul(sign));
    // Rounding makes a variance of 0 a little less.
    const double variance = std::max(0.0, variances.select(0, d - 1 - k).item<double>());
    components.explained_variance[static_cast<size_t>(k)] = whole > 0 ? variance / whole : 0;
  }
  return components;
}

at::Tensor Coordinates(const PrincipalComponents& components, const at::Tensor& points) {
  return at::mm(points.to(at::kDouble).sub(components.mean), components.directions);
}

}  // namespace lengthwise::worker::evaluation
