#include "models/kernels/stream_launcher.h"
#include "models/kernels/tensor_attention_cuda.h"
#include "models/kernels/tensor_attention_launches.h"

namespace lengthwise::kernels {

const char* TensorAttentionBackwardCuda(const TensorAttentionInputs& inputs, const BFloat16* output,
                                        const BFloat16* output_gradient, const float* log_sum_exp,
                                        const TensorAttentionGradients& gradients, float* workspace,
                                        void* stream) {
  StreamLauncher launcher(stream);
  LaunchTensorBackward(launcher, inputs, output, output_gradient, log_sum_exp, gradients,
                       workspace);
  return launcher.error();
}

int64_t TensorAttentionWorkspace(const TensorAttentionInputs& inputs, bool additive_gradient) {
  return MakeTensorPlan(inputs, additive_gradient).size;
}

}  // namespace lengthwise::kernels
