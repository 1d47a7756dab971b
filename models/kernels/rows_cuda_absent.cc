// Stub of rows_cuda.cu for builds without nvcc.
#include "models/kernels/rows_cuda.h"

namespace lengthwise::kernels {
namespace {

constexpr char kAbsent[] = "built without nvcc";

}  // namespace

bool HasRowsCuda() { return false; }

template <typename T>
const char* AddLayerNormCuda(const RowsShape&, float, const float*, const T*, const float*,
                             const float*, const AddLayerNormResult&, BFloat16*, void*) {
  return kAbsent;
}

template <typename T>
const char* AddLayerNormBackwardCuda(const RowsShape&, const float*, const float*, const float*,
                                     const float*, const BFloat16*, const AddLayerNormGradients&,
                                     T*, float*, void*) {
  return kAbsent;
}

int64_t AddLayerNormWorkspaceCuda(const RowsShape&) { return 0; }

template <typename T>
const char* BiasReluCuda(const RowsShape&, const float*, T*, void*) {
  return kAbsent;
}

template <typename T>
const char* BiasReluBackwardCuda(const RowsShape&, const T*, T*, float*, float*, void*) {
  return kAbsent;
}

int64_t BiasReluWorkspaceCuda(const RowsShape&) { return 0; }

const char* CrossEntropyCuda(const RowsShape&, const CrossEntropyInputs&, const CrossEntropyResult&,
                             float*, void*) {
  return kAbsent;
}

const char* CrossEntropyBackwardCuda(const RowsShape&, const CrossEntropyInputs&, const float*,
                                     const float*, float*, void*) {
  return kAbsent;
}

int64_t CrossEntropyWorkspaceCuda(const RowsShape&) { return 0; }

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
