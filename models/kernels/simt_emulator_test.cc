#include "models/kernels/testing/simt_emulator.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "models/kernels/simt.h"
#include "models/kernels/simt_matrix.h"

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

// Exact in bfloat16.
float OfA(int row, int column) { return static_cast<float>(row - 2 * column % 7); }
float OfB(int row, int column) { return static_cast<float>(3 * row % 5 - column); }

// The numbers that PTX's documentation gives a lane: "Matrix Fragments for mma.m16n8k16 with
// floating point type", number i of A's eight, B's four and the result's four.
void ProductKernel(float* out) {
  const int group = Lane() >> 2, in_group = Lane() % 4;
  float a[8], b[4], d[4] = {};
  for (int i = 0; i < 8; ++i) {
    const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
    const int column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    a[i] = OfA(row, column);
  }
  for (int i = 0; i < 4; ++i) b[i] = OfB(in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0), group);
  const uint32_t packed[4] = {Pack(a[0], a[1]), Pack(a[2], a[3]), Pack(a[4], a[5]),
                              Pack(a[6], a[7])};
  AddProduct(packed, Pack(b[0], b[1]), Pack(b[2], b[3]), d);
  // The first eight columns and rows alone: "m16n8k8".
  float half[4] = {};
  AddProduct({packed[0], packed[1]}, Pack(b[0], b[1]), half);
  for (int i = 0; i < 4; ++i) {
    const int row = i < 2 ? group : group + 8, column = in_group * 2 + (i & 1);
    out[row * 8 + column] = d[i];
    out[128 + row * 8 + column] = half[i];
  }
}

TEST(SimtEmulatorTest, ProductsHaveTheDocumentedLayout) {
  std::vector<float> out(256);
  Emulator device(kShuffled);
  device.Launch(&ProductKernel, 1, 32, 0, out.data());
  EXPECT_EQ(device.problem(), "");
  for (const int depth : {16, 8}) {
    for (int i = 0; i < 128; ++i) {
      float expected = 0;
      for (int k = 0; k < depth; ++k) expected += OfA(i / 8, k) * OfB(k, i % 8);
      EXPECT_EQ(out[static_cast<size_t>(depth == 16 ? i : 128 + i)], expected) << depth;
    }
  }
}

// Two matrices [8, 8] in shared memory; "ldmatrix": lane 4 g + t gets the columns 2 t and 2 t + 1
// of row g, or of the transposed matrix.
void LoadKernel(float* out) {
  SharedArrays shared;
  auto* numbers = reinterpret_cast<BFloat16*>(shared.Take(64));
  for (int i = Thread(); i < 128; i += 32) {
    numbers[i] = FromFloat<BFloat16>(static_cast<float>(i));
  }
  Barrier();
  uint32_t x[2], transposed[2];
  LoadMatrices<2, false>(numbers + Lane() % 16 * 8, x);
  LoadMatrices<2, true>(numbers + Lane() % 16 * 8, transposed);
  for (int m = 0; m < 2; ++m) {
    const int at = m * 64 + Lane() / 4 * 8 + Lane() % 4 * 2;
    out[at] = Low(x[m]);
    out[at + 1] = High(x[m]);
    out[128 + at] = Low(transposed[m]);
    out[128 + at + 1] = High(transposed[m]);
    out[256 + at] = Low(Transposed(x[m]));
    out[256 + at + 1] = High(Transposed(x[m]));
  }
}

TEST(SimtEmulatorTest, MatricesAreLoadedAndTransposed) {
  std::vector<float> out(384);
  Emulator device(kShuffled);
  device.Launch(&LoadKernel, 1, 32, 256, out.data());
  EXPECT_EQ(device.problem(), "");
  for (size_t i = 0; i < 128; ++i) {
    const size_t across = i / 64 * 64 + i % 8 * 8 + i % 64 / 8;
    EXPECT_EQ(out[i], i);
    EXPECT_EQ(out[128 + i], across);
    EXPECT_EQ(out[256 + i], across);
  }
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
