#include "worker/evaluation/projection.h"

#include <utility>

#include "ATen/core/Tensor.h"
#include "worker/evaluation/principal_components.h"

namespace lengthwise::worker::evaluation {

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
    projection.set_sequences(static_cast<int32_t>(sequences));
    projection.set_tokens(static_cast<int32_t>(activations[0].size(1)));
    projection.set_depths(static_cast<int32_t>(activations.size()));
    for (size_t depth = 0; depth < activations.size(); ++depth) {
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
