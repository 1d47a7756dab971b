#include "worker/training/exceptions.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lengthwise::worker::training {

bool IsOutOfMemory(const std::exception& exception) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&exception) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) return true;
  const absl::string_view text = exception.what();
  return absl::StrContains(text, "DefaultCPUAllocator: can't allocate memory") ||
         absl::StrContains(text, "DefaultCPUAllocator: not enough memory") ||
         absl::StrContains(text, "CUDA error: out of memory") ||
         absl::StrContains(text, "CUBLAS_STATUS_ALLOC_FAILED") ||
         absl::StrContains(text, "CUDNN_STATUS_ALLOC_FAILED");
}

std::string FirstLine(const std::exception& exception) {
  const absl::string_view text = exception.what();
  const std::string line(text.substr(0, text.find('\n')));
  return line.empty() ? "an exception without a message" : line;
}

}  // namespace lengthwise::worker::training
