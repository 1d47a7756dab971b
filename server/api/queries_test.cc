#include "server/api/queries.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;

// Points at steps 100, 200, ... with loss = index, accuracy = 2 * index, norm = 3 * index, mean
// loss = 4 * index, length = 1000 + index.
v1::TrainingPoints Curve(int size) {
  v1::TrainingPoints points;
  for (int i = 0; i < size; ++i) {
    points.add_steps(100 * (i + 1));
    points.add_losses(static_cast<float>(i));
    points.add_accuracies(static_cast<float>(2 * i));
    points.add_gradient_norms(static_cast<float>(3 * i));
    points.add_lengths(1000 + i);
    points.add_mean_losses(static_cast<float>(4 * i));
  }
  return points;
}

TEST(DownSample, LeavesShortCurvesUnchanged) {
  EXPECT_EQ(DownSample(Curve(0), 2).steps_size(), 0);
  EXPECT_EQ(DownSample(Curve(7), 7).SerializeAsString(), Curve(7).SerializeAsString());
  EXPECT_EQ(DownSample(Curve(7), 1000).SerializeAsString(), Curve(7).SerializeAsString());
}

TEST(DownSample, KeepsEndsAndAveragesBucketsBetween) {
  // Between the first and the last of 8 points lie 1 2 3 4 5 6: buckets {1 2 3} and {4 5 6}.
  const v1::TrainingPoints points = DownSample(Curve(8), 4);
  EXPECT_THAT(points.steps(), ElementsAre(100, 400, 700, 800));
  EXPECT_THAT(points.losses(), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(points.accuracies(), ElementsAre(0, 4, 10, 14));
  EXPECT_THAT(points.gradient_norms(), ElementsAre(0, 6, 15, 21));
  EXPECT_THAT(points.lengths(), ElementsAre(1000, 1003, 1006, 1007));
  EXPECT_THAT(points.mean_losses(), ElementsAre(0, 8, 20, 28));
}

TEST(DownSample, TwoPointsAreTheEnds) {
  EXPECT_THAT(DownSample(Curve(100), 2).losses(), ElementsAre(0, 99));
}

TEST(DownSample, BucketsCoverEveryPointOnce) {
  for (int size = 3; size < 60; ++size) {
    for (int max_points = 3; max_points <= size; ++max_points) {
      const v1::TrainingPoints points = DownSample(Curve(size), max_points);
      ASSERT_EQ(points.steps_size(), max_points);
      // A bucket's points end at its step, so mean times number, summed over the buckets, is 0 +
      // ... + (size - 1).
      double sum = 0;
      int64_t done = 0;
      int smallest = size, largest = 0;
      for (int i = 0; i < max_points; ++i) {
        const int count = static_cast<int>(points.steps(i) / 100 - done);
        sum += points.losses(i) * count;
        done += count;
        if (i > 0 && i + 1 < max_points) {
          smallest = std::min(smallest, count);
          largest = std::max(largest, count);
        }
      }
      ASSERT_NEAR(sum, size * (size - 1) / 2.0, 1e-3) << size << " " << max_points;
      ASSERT_LE(largest - smallest, 1) << size << " " << max_points;
    }
  }
}

TEST(DownSample, NotANumberStaysVisible) {
  v1::TrainingPoints points = Curve(10);
  points.set_losses(5, std::numeric_limits<float>::quiet_NaN());
  const v1::TrainingPoints sampled = DownSample(points, 3);
  EXPECT_TRUE(std::isnan(sampled.losses(1)));
  EXPECT_FLOAT_EQ(sampled.accuracies(1), 9);  // 2 * mean of 1..8
}

TEST(DownSample, AveragesInDoublePrecision) {
  v1::TrainingPoints points;
  for (int i = 0; i < 100'002; ++i) {
    points.add_steps(i);
    points.add_losses(0.1f);
    points.add_accuracies(0);
    points.add_gradient_norms(0);
    points.add_lengths(1);
  }
  EXPECT_EQ(DownSample(points, 3).losses(1), 0.1f);
}

TEST(AppendPoints, FillsMissingColumnsSoThatAllStayEqual) {
  v1::TrainingPoints part;
  part.add_steps(1);
  part.add_losses(0.5f);
  v1::TrainingPoints all;
  AppendPoints(part, all);
  AppendPoints(Curve(2), all);
  EXPECT_THAT(all.steps(), ElementsAre(1, 100, 200));
  EXPECT_THAT(all.losses(), ElementsAre(0.5f, 0, 1));
  EXPECT_THAT(all.lengths(), ElementsAre(0, 1000, 1001));
  // An old history knows the loss of the batch alone.
  EXPECT_THAT(all.mean_losses(), ElementsAre(0.5f, 0, 4));
}

}  // namespace
}  // namespace lengthwise::server
