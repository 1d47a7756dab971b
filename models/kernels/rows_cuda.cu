#include "models/kernels/add_layer_norm_cuda-inl.h"
#include "models/kernels/bias_relu_cuda-inl.h"
#include "models/kernels/cross_entropy_cuda-inl.h"
#include "models/kernels/rows_cuda.h"
#include "models/kernels/stream_launcher.h"

namespace lengthwise::kernels {

template <typename T>
const char* AddLayerNormCuda(const AddLayerNormCall<T>& call, void* stream) {
  StreamLauncher launcher(stream);
  LaunchAddLayerNorm(launcher, call);
  return launcher.error();
}

template <typename T>
const char* AddLayerNormBackwardCuda(const AddLayerNormBackwardCall<T>& call, float* workspace,
                                     void* stream) {
  StreamLauncher launcher(stream);
  LaunchAddLayerNormBackward(launcher, call, workspace);
  return launcher.error();
}

template <typename T>
const char* BiasReluCuda(const RowsShape& shape, const float* bias, T* rows, void* stream) {
  StreamLauncher launcher(stream);
  LaunchBiasRelu(launcher, shape, bias, rows);
  return launcher.error();
}

template <typename T>
const char* BiasReluBackwardCuda(const RowsShape& shape, const T* rows, T* gradient,
                                 float* bias_gradient, float* workspace, void* stream) {
  StreamLauncher launcher(stream);
  LaunchBiasReluBackward(launcher, shape, rows, gradient, bias_gradient, workspace);
  return launcher.error();
}

const char* CrossEntropyCuda(const RowsShape& shape, const CrossEntropyInputs& inputs,
                             const CrossEntropyResult& result, float* workspace, void* stream) {
  StreamLauncher launcher(stream);
  LaunchCrossEntropy(launcher, shape, inputs, result, workspace);
  return launcher.error();
}

const char* CrossEntropyBackwardCuda(const RowsShape& shape, const CrossEntropyInputs& inputs,
                                     const float* log_sum_exp, const float* sum_gradients,
                                     float* logits_gradient, void* stream) {
  StreamLauncher launcher(stream);
  LaunchCrossEntropyBackward(launcher, shape, inputs, log_sum_exp, sum_gradients, logits_gradient);
  return launcher.error();
}

template const char* AddLayerNormCuda(const AddLayerNormCall<float>&, void*);
template const char* AddLayerNormCuda(const AddLayerNormCall<BFloat16>&, void*);
template const char* AddLayerNormBackwardCuda(const AddLayerNormBackwardCall<float>&, float*,
                                              void*);
template const char* AddLayerNormBackwardCuda(const AddLayerNormBackwardCall<BFloat16>&, float*,
                                              void*);
template const char* BiasReluCuda(const RowsShape&, const float*, float*, void*);
template const char* BiasReluCuda(const RowsShape&, const float*, BFloat16*, void*);
template const char* BiasReluBackwardCuda(const RowsShape&, const float*, float*, float*, float*,
                                          void*);
template const char* BiasReluBackwardCuda(const RowsShape&, const BFloat16*, BFloat16*, float*,
                                          float*, void*);

}  // namespace lengthwise::kernels
