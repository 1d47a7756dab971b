// What the exceptions of LibTorch and the standard library say.
#ifndef LENGTHWISE_WORKER_TRAINING_EXCEPTIONS_H_
#define LENGTHWISE_WORKER_TRAINING_EXCEPTIONS_H_

#include <exception>
#include <string>

namespace lengthwise::worker::training {

// Whether the device's memory, or the host's, did not hold the pack. LibTorch's allocators on CUDA
// have a type for it; its CPU allocator, and CUDA's own libraries, say it in words.
bool IsOutOfMemory(const std::exception& exception);

// The message for people: LibTorch's go on for pages, with a stack trace.
std::string FirstLine(const std::exception& exception);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_EXCEPTIONS_H_
