// A device for tests whose memory the host may not look into, as a GPU's: LibTorch's "PrivateUse1",
// computed with by the CPU. It knows what a program brought to it and asked it for.
#ifndef LENGTHWISE_MODELS_LAYERS_FAR_DEVICE_H_
#define LENGTHWISE_MODELS_LAYERS_FAR_DEVICE_H_

#include <set>
#include <string>

#include "c10/core/Device.h"

namespace lengthwise::models {

inline const c10::Device kFarDevice(c10::DeviceType::PrivateUse1, 0);

// Operations since the last call for which a program has to wait for a device: copies between it
// and the host, numbers of its tensors, and results whose sizes depend on numbers. Any thread.
std::set<std::string> TakeWaits();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_FAR_DEVICE_H_
