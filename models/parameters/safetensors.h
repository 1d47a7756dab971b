// The safetensors file format: named tensors that a reader can check before it trusts a byte, and
// that the Python package of that name opens. See huggingface.co/docs/safetensors.
//
//   8 bytes   size N of the header, little endian
//   N bytes   JSON object: {"__metadata__": {text: text}, name: {"dtype", "shape", "data_offsets":
//   [begin, end]}, ...},
//             padded with spaces so that the data starts at a multiple of 8
//   the rest  the tensors' bytes, row-major, little endian, without holes or overlaps
//
// No LibTorch.
#ifndef LENGTHWISE_MODELS_PARAMETERS_SAFETENSORS_H_
#define LENGTHWISE_MODELS_PARAMETERS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::models {

enum class DataType { kFloat32, kFloat64 };

// "F32" or "F64"; 4 or 8 bytes.
absl::string_view DataTypeName(DataType type);
int64_t DataTypeSize(DataType type);

// A tensor whose bytes belong to someone else.
struct TensorView {
  std::string name;
  DataType type = DataType::kFloat32;
  std::vector<int64_t> shape;
  absl::string_view bytes;
};

struct TensorFile {
  std::map<std::string, std::string> metadata;
  // In the order of their bytes.
  std::vector<TensorView> tensors;
};

// Returns the file's bytes. Names must differ, none may be "__metadata__", and each tensor's bytes
// must be as many as its shape and type say (programming errors otherwise). The same contents give
// the same bytes.
std::string WriteSafetensors(const TensorFile& file);

// Returns views into `bytes`, which must outlive them. `bytes` may come from anywhere: DATA_LOSS,
// saying what is wrong, for whatever is not a complete and consistent file of this format with
// tensors of the types above.
absl::StatusOr<TensorFile> ReadSafetensors(absl::string_view bytes);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PARAMETERS_SAFETENSORS_H_
