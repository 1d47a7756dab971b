// Converts batches of examples to tensors for a pack of models, and measures a model's outputs on
// them.
#ifndef LENGTHWISE_WORKER_DATA_BATCH_TENSORS_H_
#define LENGTHWISE_WORKER_DATA_BATCH_TENSORS_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "models/networks/network.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// Returns a copy of `values` on the device. `type` must be the tensor type of T.
template <typename T>
at::Tensor ToDevice(const std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type,
                    at::Device device) {
  return at::from_blob(const_cast<T*>(values.data()), shape, at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

// Batch of P members with B rows each.
struct BatchTensors {
  models::NetworkInput input;
  at::Tensor classes;         // int64 [P, B, m]; undefined where targets are numbers
  at::Tensor number_targets;  // [P, B, m]; undefined where targets are classes
  at::Tensor mask;            // bool [P, B, m]
};

// Converts one member's batch (P = 1). Numbers get type `dtype`. The tensors may share the batch's
// memory, so `batch` must outlive them. Training steps write their inputs to the device through
// step_inputs.h instead.
BatchTensors ToTensors(Batch& batch, at::Device device, at::ScalarType dtype);

// Repeats one member's input for `members` members.
models::NetworkInput ForEachMember(const models::NetworkInput& input, int64_t members);

// Measures of one step, one per member [P]: the differentiable training loss, and the share of
// masked outputs that are right, in double precision.
struct StepMeasures {
  at::Tensor losses;
  at::Tensor accuracies;
};

// `outputs` [P, B, m, O]. For classes the loss is the mean soft-max cross-entropy over all outputs.
// For numbers it is the mean squared error over the outputs in the mask, and an output is right if
// it is within 0.05 + 5 % of its target.
StepMeasures Measure(const at::Tensor& outputs, const BatchTensors& batch);

// What a batch's measures are means over, for each member [P]: its examples that have a loss, and
// its outputs in the mask.
struct Counts {
  at::Tensor examples;
  at::Tensor outputs;
};
Counts CountsOf(const BatchTensors& batch);

// As Measure, for a step of several batches: the loss of numbers is the mean over the examples with
// an output in the mask, of each one's mean squared error. `counts` are the batch's.
StepMeasures MeasureEach(const at::Tensor& outputs, const BatchTensors& batch,
                         const Counts& counts);

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_BATCH_TENSORS_H_
