#include "worker/metrics/nvml.h"

#include <dlfcn.h>

#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

constexpr char kDriver[] = "worker/metrics/libfake_nvml.so";
constexpr int64_t kGib = int64_t{1} << 30;

int Users() {
  void* library = dlopen(kDriver, RTLD_NOW);
  return reinterpret_cast<int (*)()>(dlsym(library, "FakeNvmlUsers"))();
}

TEST(Nvml, ReadsMemoryAndUtilization) {
  {
    const auto read = OpenNvml("0000:65:00.0", kDriver);
    ASSERT_NE(read, nullptr) << dlerror();
    const std::optional<v1::GpuUse> first = read();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->memory_total_bytes(), 80 * kGib);
    EXPECT_EQ(first->memory_used_bytes(), kGib);
    EXPECT_DOUBLE_EQ(first->utilization(), 0.37);
    const std::optional<v1::GpuUse> second = read();
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->memory_used_bytes(), 2 * kGib);
    EXPECT_EQ(second->utilization(), 0);
    EXPECT_EQ(Users(), 1);
  }
  EXPECT_EQ(Users(), 0);
}

TEST(Nvml, IsNullWithoutDriverOrGpu) {
  EXPECT_EQ(OpenNvml("0000:65:00.0", "libno_such_driver.so.1"), nullptr);
  EXPECT_EQ(OpenNvml("0000:01:00.0", kDriver), nullptr);
  EXPECT_EQ(Users(), 0);
  // A library without NVML's symbols.
  EXPECT_EQ(OpenNvml("0000:65:00.0", "libm.so.6"), nullptr);
}

}  // namespace
}  // namespace lengthwise::worker
