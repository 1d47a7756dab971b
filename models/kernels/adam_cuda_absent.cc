// Stub of adam_cuda.cu for builds without nvcc.
#include "models/kernels/adam_cuda.h"

namespace lengthwise::kernels {

const char* AdamStepCuda(const AdamRows& /*rows*/, const AdamConstants& /*constants*/,
                         void* /*stream*/) {
  return "built without nvcc";
}

}  // namespace lengthwise::kernels
