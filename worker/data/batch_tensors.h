// Host numbers as tensors, and a batch as tensors of a pack.
#ifndef LENGTHWISE_WORKER_DATA_BATCH_TENSORS_H_
#define LENGTHWISE_WORKER_DATA_BATCH_TENSORS_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "models/networks/network.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// A copy of `values`, which are of `type`, on the device.
template <typename T>
at::Tensor ToDevice(const std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type,
                    at::Device device) {
  return at::from_blob(const_cast<T*>(values.data()), shape, at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

// Of P members, each with the same number B of the batch's rows.
struct BatchTensors {
  models::NetworkInput input;
  at::Tensor classes;         // int64 [P, B, m]; undefined where targets are numbers
  at::Tensor number_targets;  // [P, B, m]; undefined where targets are classes
  at::Tensor mask;            // bool [P, B, m]
};

// Of one member. Numbers are of type `dtype`. The tensors may share the batch's memory, which must
// outlive them. What a step trains on goes to a device by step_inputs.h.
BatchTensors ToTensors(Batch& batch, at::Device device, at::ScalarType dtype);

// The same input for each of `members` members.
models::NetworkInput ForEachMember(const models::NetworkInput& input, int64_t members);

// Of each member [P]: the loss whose gradient trains it, differentiable; and the share of the
// outputs that the mask counts which are right, in double precision.
struct StepMeasures {
  at::Tensor losses;
  at::Tensor accuracies;
};

// `outputs` [P, B, m, O]. The loss is the mean soft-max cross-entropy over all outputs or, where
// targets are numbers, the mean squared error of those that the mask counts; such an output is
// right when it is within 0.05 + 5 % of its target.
StepMeasures Measure(const at::Tensor& outputs, const BatchTensors& batch);

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_BATCH_TENSORS_H_
