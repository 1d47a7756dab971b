#include "models/kernels/stream_launcher.h"
#include "models/kernels/tensor_attention_cuda.h"
#include "models/kernels/tensor_attention_launches.h"

namespace lengthwise::kernels {

const char* TensorAttentionForwardCuda(const TensorAttentionInputs& inputs, BFloat16* output,
                                       float* log_sum_exp, void* stream) {
  StreamLauncher launcher(stream);
  LaunchTensorForward(launcher, inputs, output, log_sum_exp);
  return launcher.error();
}

}  // namespace lengthwise::kernels
