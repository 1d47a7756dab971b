#include "worker/training/exceptions.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

#include "gtest/gtest.h"

namespace lengthwise::worker::training {
namespace {

TEST(OutOfMemoryTest, RecognizesCpuAllocatorErrors) {
  try {
    // More than any address space holds.
    at::empty({int64_t{1} << 59}, at::kFloat);
    FAIL() << "it was allocated";
  } catch (const std::exception& exception) {
    EXPECT_TRUE(IsOutOfMemory(exception)) << exception.what();
  }
}

TEST(OutOfMemoryTest, RecognizesCudaAllocatorErrors) {
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 2.00 GiB");
  } catch (const std::exception& exception) {
    EXPECT_TRUE(IsOutOfMemory(exception));
  }
}

TEST(OutOfMemoryTest, IgnoresOtherErrors) {
  try {
    at::ones({2}).view({3});
    FAIL() << "it was viewed";
  } catch (const std::exception& exception) {
    EXPECT_FALSE(IsOutOfMemory(exception)) << exception.what();
  }
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("the memory of this was lost")));
  EXPECT_TRUE(IsOutOfMemory(std::bad_alloc()));
}

}  // namespace
}  // namespace lengthwise::worker::training
