#include "worker/metrics/measurements.h"

#include <optional>

#include "gtest/gtest.h"
#include "monitoring/samples.h"

namespace lengthwise::worker {
namespace {

TEST(Measurements, CountersOnlyGrow) {
  Measurements measurements;
  EXPECT_EQ(monitoring::Count(measurements.Read().step_seconds()), 0);
  measurements.CountStep({.models = 30, .seconds = 0.25, .data_wait_seconds = 0.125});
  measurements.CountStep({.models = 2, .seconds = 0.5, .data_wait_seconds = 0.25});
  measurements.CountEvaluation(1.5);
  measurements.CountEvaluation(2);
  measurements.CountCheckpoint(0.5, 1000);
  for (int read = 0; read < 2; ++read) {
    const v1::WorkerMeasurements counted = measurements.Read();
    EXPECT_EQ(counted.steps(), 2);
    EXPECT_EQ(counted.model_steps(), 32);
    EXPECT_EQ(counted.data_wait_seconds(), 0.375);
    EXPECT_EQ(counted.evaluation_seconds(), 3.5);
    EXPECT_EQ(counted.checkpoints(), 1);
    EXPECT_EQ(counted.checkpoint_seconds(), 0.5);
    EXPECT_EQ(counted.checkpoint_bytes(), 1000);
    EXPECT_TRUE(monitoring::IsSound(counted.step_seconds()));
    EXPECT_EQ(monitoring::Count(counted.step_seconds()), 2);
    EXPECT_EQ(counted.step_seconds().sum(), 0.75);
    EXPECT_GT(counted.resident_memory_bytes(), 1 << 20);
    EXPECT_FALSE(counted.has_gpu());
  }
}

TEST(Measurements, ReadsTheGpuEachTime) {
  std::optional<v1::GpuUse> use;
  Measurements measurements([&use] { return use; });
  EXPECT_FALSE(measurements.Read().has_gpu());
  use.emplace().set_memory_used_bytes(7);
  EXPECT_EQ(measurements.Read().gpu().memory_used_bytes(), 7);
}

TEST(Measurements, ReportsKernelsOfTheNewestPack) {
  EXPECT_EQ(Measurements().Read().kernels(), "");
  std::string kernels = "auto";
  Measurements measurements(nullptr, [&kernels] { return kernels; });
  EXPECT_EQ(measurements.Read().kernels(), "auto");
  kernels = "attention fused 3.05x";
  EXPECT_EQ(measurements.Read().kernels(), "attention fused 3.05x");
}

}  // namespace
}  // namespace lengthwise::worker
