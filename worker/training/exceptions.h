// Classifies and shortens exceptions of LibTorch and the standard library.
#ifndef LENGTHWISE_WORKER_TRAINING_EXCEPTIONS_H_
#define LENGTHWISE_WORKER_TRAINING_EXCEPTIONS_H_

#include <exception>
#include <string>

namespace lengthwise::worker::training {

// Returns true if device or host memory was exhausted. LibTorch's CUDA allocators throw a dedicated
// type; its CPU allocator and CUDA's libraries are recognized by their messages.
bool IsOutOfMemory(const std::exception& exception);

// First line of the message. LibTorch appends pages of stack trace.
std::string FirstLine(const std::exception& exception);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_EXCEPTIONS_H_
