#include <cuda_runtime.h>

#include "models/optimizers/adam_cuda.h"

namespace lengthwise::models {
namespace {

constexpr int kThreads = 256;

// One block row a member (blockIdx.y), so that its rate is the same for the whole block.
__global__ void AdamKernel(AdamRows rows, AdamConstants constants) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= rows.row_size) return;
  const int64_t i = blockIdx.y * rows.row_size + column;
  const float gradient = rows.gradients[i];
  const float first = constants.beta1 * rows.first_moments[i] + (1.0f - constants.beta1) * gradient;
  const float second =
      constants.beta2 * rows.second_moments[i] + (1.0f - constants.beta2) * gradient * gradient;
  rows.first_moments[i] = first;
  rows.second_moments[i] = second;
  const float root = sqrtf(second / constants.second_correction) + constants.epsilon;
  rows.parameters[i] -= rows.rates[blockIdx.y] * (first / root);
}

}  // namespace

bool HasAdamCuda() { return true; }

const char* AdamStepCuda(const AdamRows& rows, const AdamConstants& constants) {
  const int64_t blocks = (rows.row_size + kThreads - 1) / kThreads;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(rows.count));
  AdamKernel<<<grid, kThreads>>>(rows, constants);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace lengthwise::models
