#include "worker/evaluation/projection.h"

#include <algorithm>
#include <utility>

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
    // Rounding can make a variance of 0 slightly negative.
    const double variance = std::max(0.0, variances.select(0, d - 1 - k).item<double>());
    components.explained_variance[static_cast<size_t>(k)] = whole > 0 ? variance / whole : 0;
  }
  return components;
}

at::Tensor Coordinates(const PrincipalComponents& components, const at::Tensor& points) {
  return at::mm(points.to(at::kDouble).sub(components.mean), components.directions);
}

std::vector<v1::Projection> ProjectActivations(const Evaluator& evaluator,
                                               const models::ParameterSet& parameters,
                                               int64_t fitted_length, int64_t sequences,
                                               absl::Span<const int32_t> lengths) {
  const std::vector<at::Tensor> fitted_activations =
      evaluator.CaptureActivations(parameters, fitted_length, sequences);
  std::vector<PrincipalComponents> components;
  for (const at::Tensor& depth : fitted_activations) {
    components.push_back(FitPrincipalComponents(depth.flatten(0, 1)));
  }

  std::vector<v1::Projection> projections;
  for (const int32_t length : lengths) {
    const std::vector<at::Tensor> activations =
        length == fitted_length ? fitted_activations
                                : evaluator.CaptureActivations(parameters, length, sequences);
    v1::Projection projection;
    projection.set_fitted_length(static_cast<int32_t>(fitted_length));
    projection.set_length(length);
    projection.set_sequences(static_cast<int32_t>(activations[0].size(0)));
    projection.set_tokens(static_cast<int32_t>(activations[0].size(1)));
    // A looped network may have other depths at other lengths; those of both are comparable.
    const size_t depths = std::min(components.size(), activations.size());
    projection.set_depths(static_cast<int32_t>(depths));
    for (size_t depth = 0; depth < depths; ++depth) {
      const at::Tensor coordinates =
          Coordinates(components[depth], activations[depth].flatten(0, 1))
              .to(at::kFloat)
              .contiguous();
      projection.mutable_coordinates()->append(
          static_cast<const char*>(coordinates.const_data_ptr()),
          static_cast<size_t>(coordinates.numel()) * sizeof(float));
      for (const double share : components[depth].explained_variance) {
        projection.add_explained_variance(share);
      }
    }
    projections.push_back(std::move(projection));
  }
  return projections;
}

}  // namespace lengthwise::worker::evaluation
