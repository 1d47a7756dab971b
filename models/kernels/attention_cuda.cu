#include "models/kernels/attention_cuda.h"
#include "models/kernels/attention_launches.h"
#include "models/kernels/stream_launcher.h"

namespace lengthwise::kernels {

template <typename T>
const char* AttentionForwardCuda(const AttentionInputsOf<T>& inputs, const HeadVectors<T>& output,
                                 float* log_sum_exp, void* stream) {
  StreamLauncher launcher(stream);
  LaunchForward(launcher, inputs, output, log_sum_exp);
  return launcher.error();
}

template <typename T>
const char* AttentionBackwardCuda(const AttentionInputsOf<T>& inputs,
                                  const HeadVectors<const T>& output,
                                  const HeadVectors<const T>& output_gradient,
                                  const float* log_sum_exp,
                                  const AttentionGradientsOf<T>& gradients, float* workspace,
                                  void* stream) {
  StreamLauncher launcher(stream);
  LaunchBackward(launcher, inputs, output, output_gradient, log_sum_exp, gradients, workspace);
  return launcher.error();
}

int64_t AttentionWorkspaceCuda(const AttentionShape& shape, const AttentionTerms& terms) {
  return MakeBackwardPlan(shape, terms).size;
}

template const char* AttentionForwardCuda(const AttentionInputsOf<float>&,
                                          const HeadVectors<float>&, float*, void*);
template const char* AttentionForwardCuda(const AttentionInputsOf<BFloat16>&,
                                          const HeadVectors<BFloat16>&, float*, void*);
template const char* AttentionBackwardCuda(const AttentionInputsOf<float>&,
                                           const HeadVectors<const float>&,
                                           const HeadVectors<const float>&, const float*,
                                           const AttentionGradientsOf<float>&, float*, void*);
template const char* AttentionBackwardCuda(const AttentionInputsOf<BFloat16>&,
                                           const HeadVectors<const BFloat16>&,
                                           const HeadVectors<const BFloat16>&, const float*,
                                           const AttentionGradientsOf<BFloat16>&, float*, void*);

}  // namespace lengthwise::kernels
