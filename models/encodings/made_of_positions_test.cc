#include "models/encodings/made_of_positions.h"

#include <cstdint>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/from_blob.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

TEST(MadeOfPositionsTest, MakesOnceOfTheSamePositions) {
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
  // Blocks take their view of the positions each for itself.
  EXPECT_TRUE(get(all.select(0, 0), at::kFloat).is_same(first));
  EXPECT_EQ(times, 1);

  EXPECT_EQ(get(all.select(0, 0), at::kDouble).scalar_type(), at::kDouble);
  EXPECT_EQ(times, 2);
  EXPECT_EQ(get(all.select(0, 1), at::kDouble)[0].item<double>(), 6);
  EXPECT_EQ(get(all.select(0, 1).narrow(0, 0, 2), at::kDouble).size(0), 2);
  EXPECT_EQ(times, 4);
}

// As of a batch, whose memory the next batch's positions may get.
TEST(MadeOfPositionsTest, SeesOtherNumbersInTheSameMemory) {
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

}  // namespace
}  // namespace lengthwise::models
