// Adam as one CUDA kernel over whole arenas: each number is read and written once, where separate
// operations would go through memory eight times.
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
  // [count], device memory: the learning rate over 1 - beta1^step.
  const float* rates = nullptr;
  int64_t count = 0;
  int64_t row_size = 0;
};

struct AdamConstants {
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  // 1 - beta2^step.
  float second_correction = 1;
};

// Puts the update on the default stream (LibTorch's, unless a program chose another) and does not
// wait for it. The result does not depend on the launch's shape. Returns null, or CUDA's reason why
// the kernel could not be launched.
const char* AdamStepCuda(const AdamRows& rows, const AdamConstants& constants);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_ADAM_CUDA_H_
