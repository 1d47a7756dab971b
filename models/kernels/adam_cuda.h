// Adam (adam.h) on a GPU.
#ifndef LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_H_

#include "models/kernels/adam.h"

namespace lengthwise::kernels {

// Enqueues AdamStep on `stream`, a cudaStream_t of the current device (null: the default stream),
// and returns without waiting. All pointers in `rows`, including rates and second_correction, are
// device memory; `rows` must not be empty. The result does not depend on the launch configuration.
// Returns null, or CUDA's error message if the launch failed.
const char* AdamStepCuda(const AdamRows& rows, const AdamConstants& constants, void* stream);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_H_
