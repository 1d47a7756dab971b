#include "models/encodings/kept_tensors.h"

#include <cstdint>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/from_blob.h"
#include "gtest/gtest.h"
#include "models/layers/testing/far_device.h"

namespace lengthwise::models {
namespace {

TEST(MadeOfPositionsTest, SamePositionsAreComputedOnce) {
  MadeOfPositions made;
  int times = 0;
  const at::Tensor all = at::arange(6).view({2, 3});
  const auto get = [&](const at::Tensor& positions, at::ScalarType dtype) {
    return made.Get(positions, dtype, [&] {
      ++times;
      return positions.to(dtype).mul(2);
    });
  };
  const at::Tensor first = get(all.select(0, 0), at::kFloat);
  // Each block makes its own view of the positions.
  EXPECT_TRUE(get(all.select(0, 0), at::kFloat).is_same(first));
  EXPECT_EQ(times, 1);

  EXPECT_EQ(get(all.select(0, 0), at::kDouble).scalar_type(), at::kDouble);
  EXPECT_EQ(times, 2);
  EXPECT_EQ(get(all.select(0, 1), at::kDouble)[0].item<double>(), 6);
  EXPECT_EQ(get(all.select(0, 1).narrow(0, 0, 2), at::kDouble).size(0), 2);
  EXPECT_EQ(times, 4);
}

// The next batch's positions may get the same memory.
TEST(MadeOfPositionsTest, ReusedMemoryIsNotStale) {
  MadeOfPositions made;
  std::vector<int64_t> memory = {1, 5, 9};
  for (const int64_t first : {1, 2}) {
    memory[0] = first;
    const at::Tensor positions = at::from_blob(memory.data(), {3}, at::kLong);
    const at::Tensor numbers =
        made.Get(positions, at::kFloat, [&] { return positions.to(at::kFloat); });
    EXPECT_EQ(numbers[0].item<float>(), static_cast<float>(first));
  }
}

// Comparing values would wait for the device.
TEST(MadeOfPositionsTest, DevicePositionsAreComparedByTensor) {
  MadeOfPositions made;
  at::Tensor positions = at::arange(3).to(FarDevice());
  int times = 0;
  const auto get = [&](const at::Tensor& of) {
    return made.Get(of, at::kFloat, [&] {
      ++times;
      return of.to(at::kFloat);
    });
  };
  TakeWaits();
  const at::Tensor first = get(positions);
  EXPECT_TRUE(get(positions).is_same(first));
  EXPECT_EQ(times, 1);
  get(positions.view({3}));
  EXPECT_EQ(times, 2);
  get(positions);
  EXPECT_EQ(times, 3);
  positions.add_(1);
  get(positions);
  EXPECT_EQ(times, 4);
  EXPECT_TRUE(TakeWaits().empty());
}

}  // namespace
}  // namespace lengthwise::models
