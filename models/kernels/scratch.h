// Temporary memory of a kernel, freed together.
#ifndef LENGTHWISE_MODELS_KERNELS_SCRATCH_H_
#define LENGTHWISE_MODELS_KERNELS_SCRATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hwy/aligned_allocator.h"

namespace lengthwise::kernels {

class Scratch {
 public:
  // Returns `count` zeros, aligned for vectors, that live as long as this object.
  float* Zeros(int64_t count) {
    auto block = hwy::AllocateAligned<float>(static_cast<size_t>(count));
    std::fill_n(block.get(), count, 0.0F);
    blocks_.push_back(std::move(block));
    return blocks_.back().get();
  }

 private:
  std::vector<hwy::AlignedFreeUniquePtr<float[]>> blocks_;
};

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_SCRATCH_H_
