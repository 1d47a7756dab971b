// Host numbers as tensors.
#ifndef LENGTHWISE_WORKER_EVALUATION_TO_DEVICE_H_
#define LENGTHWISE_WORKER_EVALUATION_TO_DEVICE_H_

#include <vector>

#include "ATen/ATen.h"

namespace lengthwise::worker::evaluation {

// A copy of `values`, which are of `type`, on the device.
template <typename T>
at::Tensor ToDevice(const std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type,
                    at::Device device) {
  return at::from_blob(const_cast<T*>(values.data()), shape, at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_TO_DEVICE_H_
