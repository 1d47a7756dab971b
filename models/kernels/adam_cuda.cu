#include "models/kernels/adam_cuda-inl.h"
#include "models/kernels/adam_cuda.h"
#include "models/kernels/stream_launcher.h"

namespace lengthwise::kernels {

const char* AdamStepCuda(const AdamRows& rows, const AdamConstants& constants, void* stream) {
  StreamLauncher launcher(stream);
  LaunchAdam(launcher, rows, constants);
  return launcher.error();
}

}  // namespace lengthwise::kernels
