#include "worker/training/device.h"

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/ones.h"
#include "absl/status/status.h"
#include "c10/util/Exception.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/kernels/cuda_devices.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(DeviceTest, CpuIsAlwaysAvailable) {
  const auto device = OpenDevice("cpu", 2);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_FALSE(device->cuda);
  EXPECT_EQ(device->threads, 2);
  EXPECT_EQ(device->provenance.device(), "cpu");
  EXPECT_EQ(device->provenance.threads(), 2);
  EXPECT_EQ(device->provenance.cuda_version(), "");
  EXPECT_FALSE(device->provenance.host().empty());
  EXPECT_FALSE(device->provenance.program_version().empty());
  EXPECT_FALSE(device->provenance.libtorch_version().empty());
  EXPECT_FALSE(device->provenance.instruction_set().empty());
}

TEST(DeviceTest, MklUsesItsReproducibleMode) {
  ASSERT_TRUE(OpenDevice("cpu", 1).ok());
  ASSERT_NE(std::getenv("MKL_CBWR"), nullptr);
  EXPECT_THAT(std::getenv("MKL_CBWR"), AnyOf(HasSubstr("STRICT"), HasSubstr("COMPATIBLE")));
  EXPECT_THAT(MklMode(), AnyOf(HasSubstr("STRICT"), HasSubstr("COMPATIBLE")));
}

TEST(DeviceTest, AutoPrefersAGpu) {
  const auto device = OpenDevice("auto", 1);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->cuda || !device->warning.empty(), !kernels::CudaDeviceNames().empty());
}

TEST(DeviceTest, OneThreadPerCoreByDefault) {
  const auto device = OpenDevice("cpu", 0);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_GE(device->threads, 1);
}

TEST(DeviceTest, MissingDeviceErrorListsDevices) {
  for (const char* name : {"cuda:64", "cuda:-1", "cuda:x", "cuda1", "cud", "gpu", "CPU", ""}) {
    const auto device = OpenDevice(name, 1);
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(device.status().message(), HasSubstr("available: cpu")) << name;
  }
}

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

bool IsLost(int32_t code, const std::string& text) {
  return IsDeviceLost(c10::AcceleratorError({"", "", 0}, code, text));
}

TEST(DeviceLostTest, RecognizesFaultsByCudasErrorCode) {
  EXPECT_TRUE(IsLost(700, "CUDA error: an illegal memory access was encountered"));
  EXPECT_TRUE(IsLost(719, "CUDA error: a text of another version"));
  // Of a GPU that fell off its bus, is reset, or whose driver was replaced.
  for (const int32_t code : {3, 46, 100, 802, 803, 999}) EXPECT_TRUE(IsLost(code, "CUDA error"));
  EXPECT_FALSE(IsLost(2, "CUDA error: out of memory"));
  EXPECT_FALSE(IsLost(900, "CUDA error: operation not permitted when stream is capturing"));
}

TEST(DeviceLostTest, RecognizesFaultsInMessagesOfOtherLibraries) {
  EXPECT_TRUE(IsDeviceLost(std::runtime_error(
      "a CUDA kernel could not be launched: an illegal memory access was encountered")));
  EXPECT_TRUE(IsDeviceLost(std::runtime_error("CUDA error: unspecified launch failure\nmore")));
  EXPECT_TRUE(IsDeviceLost(std::runtime_error("CUDA error: unknown error")));
  EXPECT_FALSE(IsDeviceLost(std::runtime_error("an unknown error")));
  EXPECT_FALSE(IsDeviceLost(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")));
  EXPECT_FALSE(IsDeviceLost(std::runtime_error("misaligned address")));
  EXPECT_FALSE(IsDeviceLost(std::bad_alloc()));
}

}  // namespace
}  // namespace lengthwise::worker::training
