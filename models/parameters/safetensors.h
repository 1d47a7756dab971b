// The safetensors file format: named tensors that a reader validates before it trusts any byte, and
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

// A tensor that does not own its bytes.
struct TensorView {
  std::string name;
  DataType type = DataType::kFloat32;
  std::vector<int64_t> shape;
  absl::string_view bytes;
};

struct TensorFile {
  std::map<std::string, std::string> metadata;
  // In file order.
  std::vector<TensorView> tensors;
};

// Returns the file's bytes. Names must be unique and not "__metadata__", and each tensor's byte
// count must match its shape and type; otherwise it aborts. Equal contents give equal bytes.
std::string WriteSafetensors(const TensorFile& file);

// Returns views into `bytes`, which must outlive them. `bytes` is untrusted: returns DATA_LOSS with
// the reason unless it is a complete and consistent file of this format with tensors of the types
// above.
absl::StatusOr<TensorFile> ReadSafetensors(absl::string_view bytes);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PARAMETERS_SAFETENSORS_H_
