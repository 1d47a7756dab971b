// The reader of checkpoints.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/parameters/safetensors.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = models::ReadSafetensors(bytes);
  if (!file.ok()) {
    Must(file.status().code() == absl::StatusCode::kDataLoss, "damage is DATA_LOSS");
    return 0;
  }
  for (const models::TensorView& tensor : file->tensors) {
    int64_t elements = 1;
    for (const int64_t length : tensor.shape) elements *= length;
    Must(static_cast<int64_t>(tensor.bytes.size()) == elements * models::DataTypeSize(tensor.type),
         "a tensor has the bytes of its shape");
    Must(tensor.bytes.empty() ||
             (tensor.bytes.data() >= bytes.data() &&
              tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size()),
         "a tensor lies within the file");
  }
  const std::string written = models::WriteSafetensors(*file);
  const auto again = models::ReadSafetensors(written);
  Must(again.ok() && again->metadata == file->metadata &&
           again->tensors.size() == file->tensors.size(),
       "a file that was read can be rewritten");
  return 0;
}
