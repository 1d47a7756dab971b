// Whether an exception says that the device's memory, or the host's, did not hold the pack.
#ifndef LENGTHWISE_WORKER_TRAINING_OUT_OF_MEMORY_H_
#define LENGTHWISE_WORKER_TRAINING_OUT_OF_MEMORY_H_

#include <exception>

namespace lengthwise::worker::training {

// LibTorch's allocators on CUDA have a type for it; its CPU allocator, and CUDA's own libraries,
// say it in words.
bool IsOutOfMemory(const std::exception& exception);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_OUT_OF_MEMORY_H_
