// Replaces attention_cuda.cu in a build without nvcc.
#include "models/kernels/attention_cuda.h"

namespace lengthwise::kernels {
namespace {

constexpr char kAbsent[] = "built without nvcc";

}  // namespace

template <typename T>
const char* AttentionForwardCuda(const AttentionInputsOf<T>& /*inputs*/,
                                 const HeadVectors<T>& /*output*/, float* /*log_sum_exp*/,
                                 void* /*stream*/) {
  return kAbsent;
}

template <typename T>
const char* AttentionBackwardCuda(const AttentionInputsOf<T>& /*inputs*/,
                                  const HeadVectors<const T>& /*output*/,
                                  const HeadVectors<const T>& /*output_gradient*/,
                                  const float* /*log_sum_exp*/,
                                  const AttentionGradientsOf<T>& /*gradients*/,
                                  float* /*workspace*/, void* /*stream*/) {
  return kAbsent;
}

int64_t AttentionWorkspaceCuda(const AttentionShape& /*shape*/, const AttentionTerms& /*terms*/) {
  return 0;
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
