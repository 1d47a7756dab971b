// Adam as one CUDA kernel over whole arenas, clipping included: each number is read and written
// once, where separate operations would go through memory nine times.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_

#include <cstdint>

namespace lengthwise::models {

// False where the program was built without nvcc; AdamStepCuda then only reports that.
bool HasAdamCuda();

// Rows of `count` members in device memory, all [count, row_size] and contiguous.
struct AdamRows {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  float* first_moments = nullptr;
  float* second_moments = nullptr;
  // Device memory, too: numbers that change from step to step.
  const double* rates = nullptr;              // [count]: the learning rate over 1 - beta1^step
  const double* second_correction = nullptr;  // one number, 1 - beta2^step
  // [count]: what gradients are multiplied with before anything else; null for 1.
  const float* factors = nullptr;
  int64_t count = 0;
  int64_t row_size = 0;
};

struct AdamConstants {
  float beta1 = 0;
  float beta2 = 0;
  // 1 less these, which their float32 would give with four digits only.
  float rest1 = 0;
  float rest2 = 0;
  float epsilon = 0;
};

// Puts the update on `stream`, a cudaStream_t of the current device (null: the default one), and
// does not wait for it. The result does not depend on the launch's shape. Returns null, or CUDA's
// reason why the kernel could not be launched.
const char* AdamStepCuda(const AdamRows& rows, const AdamConstants& constants, void* stream);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_
