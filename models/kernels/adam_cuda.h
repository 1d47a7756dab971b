// The Adam of adam.h on a GPU.
#ifndef LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_H_

#include "models/kernels/adam.h"

namespace lengthwise::kernels {

// False where the program was built without nvcc; AdamStepCuda then only reports that.
bool HasAdamCuda();

// Puts the update of rows in device memory, as are the numbers that change from step to step, on
// `stream`, a cudaStream_t of the current device (null: the default one), and does not wait for it.
// Rows are not empty. The result does not depend on the launch's shape. Returns null, or CUDA's
// reason why the kernel could not be launched.
const char* AdamStepCuda(const AdamRows& rows, const AdamConstants& constants, void* stream);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADAM_CUDA_H_
