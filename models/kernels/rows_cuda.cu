#include "models/kernels/add_layer_norm_cuda-inl.h"
#include "models/kernels/bias_relu_cuda-inl.h"
#include "models/kernels/cross_entropy_cuda-inl.h"
#include "models/kernels/rows_cuda.h"
#include "models/kernels/stream_launcher.h"

namespace lengthwise::kernels {

bool HasRowsCuda() { return true; }

template <typename T>
const char* AddLayerNormCuda(const RowsShape& shape, float epsilon, const float* a, const T* b,
                             const float* scale, const float* offset,
                             const AddLayerNormResult& result, BFloat16* operand, void* stream) {
  StreamLauncher launcher(stream);
  LaunchAddLayerNorm<T>(launcher, {shape, epsilon, a, b, scale, offset, result, operand});
  return launcher.error();
}

template <typename T>
const char* AddLayerNormBackwardCuda(const RowsShape& shape, const float* x, const float* r,
                                     const float* scale, const float* y_gradient,
                                     const BFloat16* operand_gradient,
                                     const AddLayerNormGradients& gradients, T* b_gradient,
                                     float* workspace, void* stream) {
  StreamLauncher launcher(stream);
  LaunchAddLayerNormBackward(launcher, shape, x, r, scale, y_gradient, operand_gradient, gradients,
                             b_gradient, workspace);
  return launcher.error();
}

int64_t AddLayerNormWorkspaceCuda(const RowsShape& shape) {
  return 2 * shape.members * Chunks(shape) * shape.width;
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

int64_t BiasReluWorkspaceCuda(const RowsShape& shape) {
  return shape.members * Chunks(shape) * shape.width;
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

int64_t CrossEntropyWorkspaceCuda(const RowsShape& shape) {
  return 3 * shape.members * CrossEntropyBlocks(shape);
}

template const char* AddLayerNormCuda(const RowsShape&, float, const float*, const float*,
                                      const float*, const float*, const AddLayerNormResult&,
                                      BFloat16*, void*);
template const char* AddLayerNormBackwardCuda(const RowsShape&, const float*, const float*,
                                              const float*, const float*, const BFloat16*,
                                              const AddLayerNormGradients&, float*, float*, void*);
template const char* BiasReluCuda(const RowsShape&, const float*, float*, void*);
template const char* BiasReluBackwardCuda(const RowsShape&, const float*, float*, float*, float*,
                                          void*);
template const char* AddLayerNormCuda(const RowsShape&, float, const float*, const BFloat16*,
                                      const float*, const float*, const AddLayerNormResult&,
                                      BFloat16*, void*);
template const char* AddLayerNormBackwardCuda(const RowsShape&, const float*, const float*,
                                              const float*, const float*, const BFloat16*,
                                              const AddLayerNormGradients&, BFloat16*, float*,
                                              void*);
template const char* BiasReluCuda(const RowsShape&, const float*, BFloat16*, void*);
template const char* BiasReluBackwardCuda(const RowsShape&, const BFloat16*, BFloat16*, float*,
                                          float*, void*);

}  // namespace lengthwise::kernels
