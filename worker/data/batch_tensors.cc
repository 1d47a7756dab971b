#include "worker/data/batch_tensors.h"

#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/isclose.h"
#include "c10/core/GradMode.h"
#include "models/layers/cross_entropy.h"

namespace lengthwise::worker::data {
namespace {

// Returns an undefined tensor if there are no values.
template <typename T>
at::Tensor ToTensor(std::vector<T>& values, at::IntArrayRef shape, at::ScalarType host_type,
                    at::Device device, at::ScalarType type) {
  if (values.empty()) return {};
  return at::from_blob(values.data(), shape, at::TensorOptions().dtype(host_type)).to(device, type);
}

at::Tensor Expanded(const at::Tensor& tensor, int64_t members) {
  if (!tensor.defined()) return {};
  return tensor.expand({members, tensor.size(1), tensor.size(2)}).contiguous();
}

// Means over the last dimensions of [P, B, m], from `first` on.
at::Tensor SquaredErrors(const at::Tensor& numbers, const BatchTensors& batch, int64_t first) {
  const at::Tensor mask = batch.mask.to(numbers.scalar_type());
  return numbers.sub(batch.number_targets)
      .square()
      .mul(mask)
      .flatten(first)
      .sum(first)
      .div(mask.flatten(first).sum(first).clamp_min(1));
}

}  // namespace

BatchTensors ToTensors(Batch& batch, at::Device device, at::ScalarType dtype) {
  const std::vector<int64_t> inputs = {1, batch.rows, batch.tokens_per_row};
  const std::vector<int64_t> outputs = {1, batch.rows, batch.outputs_per_row};
  return {
      .input = {.tokens = ToTensor(batch.tokens, inputs, at::kLong, device, at::kLong),
                .numbers = ToTensor(batch.numbers, inputs, at::kDouble, device, dtype)},
      .classes = ToTensor(batch.targets, outputs, at::kLong, device, at::kLong),
      .number_targets = ToTensor(batch.number_targets, outputs, at::kDouble, device, dtype),
      .mask = ToTensor(batch.mask, outputs, at::kByte, device, at::kBool),
  };
}

models::NetworkInput ForEachMember(const models::NetworkInput& input, int64_t members) {
  return {.tokens = Expanded(input.tokens, members), .numbers = Expanded(input.numbers, members)};
}

StepMeasures Measure(const at::Tensor& outputs, const BatchTensors& batch) {
  if (!batch.number_targets.defined()) {
    const models::ClassMeasures measured = models::CrossEntropy(outputs, batch.classes, batch.mask);
    return {.losses = measured.losses, .accuracies = measured.accuracies};
  }
  const at::Tensor numbers = outputs.squeeze(-1);
  StepMeasures measures;
  measures.losses = SquaredErrors(numbers, batch, /*first=*/1);
  const c10::NoGradGuard no_gradients;
  measures.accuracies = at::isclose(numbers, batch.number_targets, /*rtol=*/0.05, /*atol=*/0.05)
                            .logical_and(batch.mask)
                            .flatten(1)
                            .sum(1)
                            .to(at::kDouble)
                            .div(batch.mask.flatten(1).sum(1).clamp_min(1));
  return measures;
}

Counts CountsOf(const BatchTensors& batch) {
  // Every class has a loss.
  const bool numbers = batch.number_targets.defined();
  return {.examples = (numbers ? batch.mask.any(2)
                               : batch.mask.new_ones({batch.mask.size(0), batch.mask.size(1)}))
                          .sum(1),
          .outputs = batch.mask.flatten(1).sum(1)};
}

StepMeasures MeasureEach(const at::Tensor& outputs, const BatchTensors& batch,
                         const Counts& counts) {
  StepMeasures measures = Measure(outputs, batch);
  if (!batch.number_targets.defined()) return measures;
  measures.losses = SquaredErrors(outputs.squeeze(-1), batch, /*first=*/2)
                        .sum(1)
                        .div(counts.examples.clamp_min(1));
  return measures;
}

}  // namespace lengthwise::worker::data
