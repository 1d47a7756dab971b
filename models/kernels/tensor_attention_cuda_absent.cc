// Replaces tensor_attention_forward_cuda.cu and tensor_attention_backward_cuda.cu in a build
// without nvcc.
#include "models/kernels/tensor_attention_cuda.h"

namespace lengthwise::kernels {

const char* TensorAttentionForwardCuda(const TensorAttentionInputs& /*inputs*/,
                                       BFloat16* /*output*/, float* /*log_sum_exp*/,
                                       void* /*stream*/) {
  return "built without nvcc";
}

const char* TensorAttentionBackwardCuda(const TensorAttentionInputs& /*inputs*/,
                                        const BFloat16* /*output*/,
                                        const BFloat16* /*output_gradient*/,
                                        const float* /*log_sum_exp*/,
                                        const TensorAttentionGradients& /*gradients*/,
                                        float* /*workspace*/, void* /*stream*/) {
  return "built without nvcc";
}

int64_t TensorAttentionWorkspace(const TensorAttentionInputs& /*inputs*/,
                                 bool /*additive_gradient*/) {
  return 0;
}

}  // namespace lengthwise::kernels
