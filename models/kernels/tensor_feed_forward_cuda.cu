#include "models/kernels/stream_launcher.h"
#include "models/kernels/tensor_feed_forward-inl.h"
#include "models/kernels/tensor_feed_forward_cuda.h"

namespace lengthwise::kernels {

const char* TensorFeedForwardCuda(const TensorFeedForwardInputs& inputs, int64_t block_rows,
                                  BFloat16* y, void* stream) {
  StreamLauncher launcher(stream);
  LaunchTensorFeedForward(launcher, inputs, block_rows, y);
  return launcher.error();
}

const char* TensorFeedForwardBackwardCuda(const TensorFeedForwardInputs& inputs, int64_t block_rows,
                                          const BFloat16* y_gradient, BFloat16* x_gradient,
                                          float* gradients, float* workspace, void* stream) {
  StreamLauncher launcher(stream);
  LaunchTensorFeedForwardBackward(launcher, inputs, block_rows, y_gradient, x_gradient, gradients,
                                  workspace);
  return launcher.error();
}

}  // namespace lengthwise::kernels
