// Where kernels of our own go on a GPU: behind LibTorch's.
#ifndef LENGTHWISE_MODELS_LAYERS_ON_STREAM_H_
#define LENGTHWISE_MODELS_LAYERS_ON_STREAM_H_

#include "c10/core/Device.h"
#include "c10/core/DeviceGuard.h"
#include "c10/core/Stream.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "c10/util/Exception.h"

namespace lengthwise::models {

// Calls launch(stream) with the stream of `device` that LibTorch would put its own kernels on, a
// cudaStream_t as void*, while `device` is the current one. Throws c10::Error where it returns a
// reason why a kernel could not be launched instead of null.
template <typename Launch>
void OnStream(const c10::Device& device, const Launch& launch) {
  const c10::DeviceGuard guard(device);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const char* error = launch(stream.native_handle());
  TORCH_CHECK(error == nullptr, "a CUDA kernel could not be launched: ", error);
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ON_STREAM_H_
