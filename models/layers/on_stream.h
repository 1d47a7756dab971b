// Launches our own kernels on LibTorch's CUDA stream, in order with LibTorch's kernels.
#ifndef LENGTHWISE_MODELS_LAYERS_ON_STREAM_H_
#define LENGTHWISE_MODELS_LAYERS_ON_STREAM_H_

#include "c10/core/Device.h"
#include "c10/core/DeviceGuard.h"
#include "c10/core/Stream.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "c10/util/Exception.h"

namespace lengthwise::models {

// Makes `device` current and calls launch(stream) with LibTorch's current stream on it, a
// cudaStream_t as void*. `launch` returns null, or the reason why a kernel could not be launched,
// which is thrown as c10::Error.
template <typename Launch>
void OnStream(const c10::Device& device, const Launch& launch) {
  const c10::DeviceGuard guard(device);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const char* error = launch(stream.native_handle());
  TORCH_CHECK(error == nullptr, "a CUDA kernel could not be launched: ", error);
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ON_STREAM_H_
