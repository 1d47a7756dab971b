#include "models/kernels/simt_emulator.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "models/kernels/simt.h"

namespace lengthwise::kernels::simt {
namespace {

constexpr Emulator::Options kForward = {.order = Emulator::Order::kForward};
constexpr Emulator::Options kBackward = {.order = Emulator::Order::kBackward};
constexpr Emulator::Options kShuffled = {.order = Emulator::Order::kShuffled, .seed = 5};

// Each thread passes its number to its neighbour. Without the barrier, the number may not be
// written yet.
template <bool kWait>
void PassOnKernel(float* out) {
  SharedArrays shared;
  float* numbers = shared.Take(Threads());
  numbers[Thread()] = static_cast<float>(Thread());
  if (kWait) Barrier();
  const int64_t place = Block() * Threads() + Thread();
  out[place] = numbers[(Thread() + 1) % Threads()];
}

template <bool kWait>
std::vector<float> PassOn(const Emulator::Options& options) {
  std::vector<float> out(3 * 64);
  Emulator device(options);
  device.Launch(&PassOnKernel<kWait>, 3, 64, 64 * 4, out.data());
  EXPECT_EQ(device.problem(), "");
  return out;
}

TEST(SimtEmulatorTest, BarrierMakesWritesVisible) {
  for (const Emulator::Options& options : {kForward, kBackward, kShuffled}) {
    const std::vector<float> out = PassOn<true>(options);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], (i % 64 + 1) % 64);
  }
}

TEST(SimtEmulatorTest, MissingBarrierYieldsNan) {
  const auto unwritten = [](const std::vector<float>& numbers) {
    int64_t count = 0;
    for (const float number : numbers) count += std::isnan(number) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(unwritten(PassOn<false>(kForward)), 3 * 63);
  EXPECT_EQ(unwritten(PassOn<false>(kBackward)), 3);
  EXPECT_GT(unwritten(PassOn<false>(kShuffled)), 3 * 10);
}

void AddLanesKernel(float* out) {
  float numbers[2] = {static_cast<float>(Thread()), 1};
  for (int mask = 1; mask < 4; mask *= 2) AddOther(mask, numbers);
  out[2 * Thread()] = numbers[0];
  out[2 * Thread() + 1] = numbers[1];
}

TEST(SimtEmulatorTest, AddOtherAddsTheNeighboursNumbers) {
  std::vector<float> out(2 * 64);
  Emulator device(kShuffled);
  device.Launch(&AddLanesKernel, 1, 64, 0, out.data());
  EXPECT_EQ(device.problem(), "");
  for (size_t t = 0; t < 64; ++t) {
    const size_t first = t / 4 * 4;
    EXPECT_EQ(out[2 * t], 4 * first + 6);
    EXPECT_EQ(out[2 * t + 1], 4);
  }
}

void AddWarpKernel(float* out) {
  float numbers[1] = {static_cast<float>(1 + Thread())};
  AddOverWarp(numbers);
  out[Thread()] = numbers[0];
}

TEST(SimtEmulatorTest, AddOverWarpGivesEveryThreadTheSum) {
  std::vector<float> out(64);
  Emulator device(kShuffled);
  device.Launch(&AddWarpKernel, 1, 64, 0, out.data());
  EXPECT_EQ(device.problem(), "");
  for (size_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], t < 32 ? 528 : 528 + 32 * 32);
}

void LeaveEarlyKernel(float*) {
  if (Thread() == 7) return;
  Barrier();
}

void PartOfAWarpKernel(float*) {
  float numbers[1] = {0};
  if (Thread() % 2 == 0) AddOther(2, numbers);
}

void TwoPlacesKernel(float*) {
  float numbers[1] = {0};
  if (Thread() < 32) {
    Barrier();
  } else {
    AddOther(1, numbers);
  }
  AddOther(1, numbers);
}

TEST(SimtEmulatorTest, UnmatchedWaitIsReported) {
  for (const auto kernel : {&LeaveEarlyKernel, &PartOfAWarpKernel}) {
    Emulator device(kForward);
    float* const nothing = nullptr;
    device.Launch(kernel, 2, 64, 0, nothing);
    EXPECT_EQ(device.problem(),
              "threads of block 0 wait at different places, or for threads that have ended");
  }
  Emulator device(kForward);
  float* const nothing = nullptr;
  device.Launch(&TwoPlacesKernel, 1, 64, 0, nothing);
  EXPECT_NE(device.problem(), "");
}

void TakeKernel(float*) {
  SharedArrays shared;
  shared.Take(9);
  shared.Take(3);
}

void OddAddressKernel(float* out) {
  SharedArrays shared;
  float* numbers = shared.Take(32 + 4);
  numbers[Thread()] = 1;
  Barrier();
  out[Thread()] = Load<4>(numbers + (Thread() == 3 ? 2 : 0)).x[0];
}

TEST(SimtEmulatorTest, SharedMemoryOverrunIsReported) {
  float* const nothing = nullptr;
  // Each array takes a multiple of 16 bytes.
  Emulator enough(kForward);
  enough.Launch(&TakeKernel, 1, 32, 48 + 16, nothing);
  EXPECT_EQ(enough.problem(), "");
  EXPECT_EQ(enough.launches(), 1);
  EXPECT_EQ(enough.largest_shared_bytes(), 64);
  Emulator short_of_it(kForward);
  short_of_it.Launch(&TakeKernel, 1, 32, 48, nothing);
  EXPECT_EQ(short_of_it.problem(),
            "shared arrays of 64 bytes exceed the launch's 48 bytes of shared memory");
}

TEST(SimtEmulatorTest, MisalignedVectorLoadIsReported) {
  std::vector<float> out(32);
  Emulator device(kForward);
  device.Launch(&OddAddressKernel, 1, 32, 36 * 4, out.data());
  EXPECT_EQ(device.problem(), "misaligned vector load or store");
}

TEST(SimtEmulatorTest, PartialWarpIsReported) {
  float* const nothing = nullptr;
  Emulator device(kForward);
  device.Launch(&TakeKernel, 1, 33, 64, nothing);
  EXPECT_EQ(device.problem(), "invalid launch: 1 blocks of 33 threads");
}

}  // namespace
}  // namespace lengthwise::kernels::simt
