// The Adam of models/kernels/adam.h on a GPU.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_

#include "models/kernels/adam.h"

namespace lengthwise::models {

// False where the program was built without nvcc; AdamStepCuda then only reports that.
bool HasAdamCuda();

// Puts the update of rows in device memory, as are the numbers that change from step to step, on
// `stream`, a cudaStream_t of the current device (null: the default one), and does not wait for it.
// The result does not depend on the launch's shape. Returns null, or CUDA's reason why the kernel
// could not be launched.
const char* AdamStepCuda(const kernels::AdamRows& rows, const kernels::AdamConstants& constants,
                         void* stream);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_
