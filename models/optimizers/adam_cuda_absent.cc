// What stands in for adam_cuda.cu in a build without nvcc.
#include "models/optimizers/adam_cuda.h"

namespace lengthwise::models {

bool HasAdamCuda() { return false; }

const char* AdamStepCuda(const kernels::AdamRows& /*rows*/,
                         const kernels::AdamConstants& /*constants*/, void* /*stream*/) {
  return "built without nvcc";
}

}  // namespace lengthwise::models
