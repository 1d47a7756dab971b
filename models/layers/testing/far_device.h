// A device for tests whose memory the host cannot access, like a GPU's. It is LibTorch's
// "PrivateUse1", computed on the CPU, and records copies and requests of a program.
#ifndef LENGTHWISE_MODELS_LAYERS_TESTING_FAR_DEVICE_H_
#define LENGTHWISE_MODELS_LAYERS_TESTING_FAR_DEVICE_H_

#include <set>
#include <string>

#include "c10/core/Device.h"

namespace lengthwise::models {

// The device, which LibTorch knows from the first call on: with it, LibTorch's backward pass takes
// no other device, so a process whose tests need a GPU must not call it.
c10::Device FarDevice();

// Returns the operations since the last call for which a program waits for the device: copies
// between it and the host, reads of tensor values, and results whose sizes depend on values.
// Thread-safe.
std::set<std::string> TakeWaits();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_TESTING_FAR_DEVICE_H_
