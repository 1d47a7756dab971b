#include "models/kernels/stream_launcher.h"
#include "models/kernels/tensor_feed_forward-inl.h"
#include "models/kernels/tensor_feed_forward_cuda.h"

namespace lengthwise::kernels {

const char* TensorFeedForwardCuda(const TensorFeedForwardInputs& inputs, BFloat16* y,
                                  void* stream) {
  StreamLauncher launcher(stream);
  LaunchTensorFeedForward(launcher, inputs, kTensorBlockRows, y);
  return launcher.error();
}

const char* TensorFeedForwardBackwardCuda(const TensorFeedForwardInputs& inputs,
                                          const BFloat16* y_gradient, BFloat16* x_gradient,
                                          float* gradients, float* workspace, void* stream) {
  StreamLauncher launcher(stream);
  LaunchTensorFeedForwardBackward(launcher, inputs, kTensorBlockRows, y_gradient, x_gradient,
                                  gradients, workspace);
  return launcher.error();
}

int64_t TensorFeedForwardWorkspace(const TensorFeedForwardInputs& inputs) {
  return FeedForwardPartNumbers(inputs, kTensorBlockRows);
}

}  // namespace lengthwise::kernels
