#include "models/encodings/made_of_positions.h"

#include "ATen/ops/arange.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

TEST(MadeOfPositionsTest, MakesOnceOfTheSamePositions) {
  MadeOfPositions made;
  int times = 0;
  const at::Tensor all = at::arange(6).view({2, 3});
  const at::Tensor positions = all.select(0, 0);
  const auto get = [&](const at::Tensor& of, at::ScalarType dtype) {
    return made.Get(of, dtype, [&] {
      ++times;
      return of.to(dtype).mul(2);
    });
  };
  const at::Tensor first = get(positions, at::kFloat);
  EXPECT_TRUE(get(positions, at::kFloat).is_same(first));
  // Blocks take their view of the positions each for itself.
  EXPECT_TRUE(get(all.select(0, 0), at::kFloat).is_same(first));
  EXPECT_EQ(times, 1);

  EXPECT_EQ(get(positions, at::kDouble).scalar_type(), at::kDouble);
  EXPECT_EQ(times, 2);

  // Other memory with the same numbers, other positions, and the same memory with other numbers.
  get(positions.clone(), at::kDouble);
  EXPECT_EQ(times, 3);
  EXPECT_EQ(get(all.select(0, 1), at::kFloat)[0].item<float>(), 6);
  get(positions, at::kFloat);
  EXPECT_EQ(times, 5);
  all.add_(1);
  EXPECT_EQ(get(positions, at::kFloat)[0].item<float>(), 2);
  EXPECT_EQ(times, 6);
}

}  // namespace
}  // namespace lengthwise::models
