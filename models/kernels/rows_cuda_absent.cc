// Stub of rows_cuda.cu for builds without nvcc.
#include "models/kernels/rows_cuda.h"

namespace lengthwise::kernels {
namespace {

constexpr char kAbsent[] = "built without nvcc";

}  // namespace

template <typename T>
const char* AddLayerNormCuda(const AddLayerNormCall<T>&, void*) {
  return kAbsent;
}

template <typename T>
const char* AddLayerNormBackwardCuda(const AddLayerNormBackwardCall<T>&, float*, void*) {
  return kAbsent;
}

template <typename T>
const char* BiasReluCuda(const RowsShape&, const float*, T*, void*) {
  return kAbsent;
}

template <typename T>
const char* BiasReluBackwardCuda(const RowsShape&, const T*, T*, float*, float*, void*) {
  return kAbsent;
}

const char* CrossEntropyCuda(const RowsShape&, const CrossEntropyInputs&, const CrossEntropyResult&,
                             float*, void*) {
  return kAbsent;
}

const char* CrossEntropyBackwardCuda(const RowsShape&, const CrossEntropyInputs&, const float*,
                                     const float*, float*, void*) {
  return kAbsent;
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
