#include "models/kernels/stream_launcher.h"
#include "models/optimizers/adam_cuda-inl.h"
#include "models/optimizers/adam_cuda.h"

namespace lengthwise::models {

bool HasAdamCuda() { return true; }

const char* AdamStepCuda(const kernels::AdamRows& rows, const kernels::AdamConstants& constants,
                         void* stream) {
  kernels::StreamLauncher launcher(stream);
  LaunchAdam(launcher, rows, constants);
  return launcher.error();
}

}  // namespace lengthwise::models
