#include "models/kernels/cuda_devices.h"

#include "gtest/gtest.h"

namespace lengthwise::kernels {
namespace {

// fake_cuda_driver.cc is the driver here.
TEST(CudaCapabilityTest, OldDevicesDoNotRunTheKernels) {
  EXPECT_EQ(CudaCapability(0), 75);
  EXPECT_FALSE(RunsCudaKernels(0));
  EXPECT_EQ(CudaCapability(1), 90);
  EXPECT_EQ(RunsCudaKernels(1), HasCudaKernels());
  EXPECT_EQ(CudaCapability(1), 90) << "the second time";
}

TEST(CudaCapabilityTest, UnknownDevicesDoNotRunTheKernels) {
  for (const int ordinal : {2, -1, 1000}) {
    EXPECT_EQ(CudaCapability(ordinal), 0) << ordinal;
    EXPECT_FALSE(RunsCudaKernels(ordinal)) << ordinal;
  }
}

}  // namespace
}  // namespace lengthwise::kernels
