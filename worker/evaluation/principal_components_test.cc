#include <cmath>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/eye.h"
#include "ATen/ops/full.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/tensor.h"
#include "gtest/gtest.h"
#include "random/stream.h"
#include "worker/evaluation/projection.h"

namespace lengthwise::worker::evaluation {
namespace {

at::Tensor Points(std::vector<double> numbers, int64_t d) {
  return at::tensor(numbers).to(at::kDouble).view({-1, d});
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

// Points with independent coordinates, uniform with the given half widths.
at::Tensor Cloud(const std::vector<double>& widths, int64_t count) {
  random::Stream stream(1, random::Purpose::kEvaluationSamples, 0);
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    for (const double width : widths) {
      numbers.push_back(width * (stream.Below(2001) / 1000.0 - 1));
    }
  }
  return Points(numbers, static_cast<int64_t>(widths.size()));
}

TEST(PrincipalComponentsTest, PointsOnALineLieOnTheFirstComponent) {
  // (1, 2, 3) + t (3, 0, -4), for t = -2 .. 2.
  std::vector<double> numbers;
  for (const double t : {-2, -1, 0, 1, 2}) {
    numbers.insert(numbers.end(), {1 + 3 * t, 2, 3 - 4 * t});
  }
  const at::Tensor points = Points(numbers, 3);
  const PrincipalComponents fitted = FitPrincipalComponents(points);
  EXPECT_LT(LargestDifference(fitted.mean, Points({1, 2, 3}, 3)), 1e-12);
  // Normalised to length 1, with the loading -4 / 5 made positive.
  EXPECT_LT(LargestDifference(fitted.directions.select(1, 0), Points({-0.6, 0, 0.8}, 3)), 1e-12);
  EXPECT_NEAR(fitted.explained_variance[0], 1, 1e-12);
  EXPECT_NEAR(fitted.explained_variance[1], 0, 1e-12);
  // Distances along the line are preserved: steps of 5.
  const at::Tensor coordinates = Coordinates(fitted, points);
  EXPECT_LT(LargestDifference(coordinates.select(1, 0), Points({10, 5, 0, -5, -10}, 5).flatten()),
            1e-12);
  EXPECT_LT(coordinates.select(1, 1).abs().max().item<double>(), 1e-7);
}

// Corners of a 6 x 2 rectangle, rotated by 30 degrees: variances are 9 and 1, times 4 / 3.
TEST(PrincipalComponentsTest, FindsTheAxesOfARotatedRectangle) {
  const double c = std::sqrt(3.0) / 2, s = 0.5;
  std::vector<double> numbers;
  for (const double x : {-3, 3}) {
    for (const double y : {-1, 1}) numbers.insert(numbers.end(), {c * x - s * y, s * x + c * y});
  }
  const PrincipalComponents fitted = FitPrincipalComponents(Points(numbers, 2));
  EXPECT_LT(LargestDifference(fitted.directions, Points({c, -s, s, c}, 2)), 1e-12);
  EXPECT_NEAR(fitted.explained_variance[0], 0.9, 1e-12);
  EXPECT_NEAR(fitted.explained_variance[1], 0.1, 1e-12);
}

TEST(PrincipalComponentsTest, CoordinatesAreCentredAndNotWhitened) {
  const at::Tensor points = Cloud({1, 5, 0.5, 3}, 2000).add(7);
  const PrincipalComponents fitted = FitPrincipalComponents(points);
  EXPECT_LT(LargestDifference(at::mm(fitted.directions.t(), fitted.directions),
                              at::eye(2, at::TensorOptions().dtype(at::kDouble))),
            1e-12);
  const at::Tensor coordinates = Coordinates(fitted, points);
  EXPECT_LT(coordinates.mean(0).abs().max().item<double>(), 1e-10);
  const at::Tensor covariance = at::mm(coordinates.t(), coordinates).div(1999);
  EXPECT_NEAR(covariance[0][1].item<double>(), 0, 1e-9);
  const double whole = points.var(0).sum().item<double>();
  for (int64_t k = 0; k < 2; ++k) {
    EXPECT_NEAR(covariance[k][k].item<double>() / whole,
                fitted.explained_variance[static_cast<size_t>(k)], 1e-12);
  }
  // A uniform distribution of half width w has variance w^2 / 3.
  EXPECT_NEAR(fitted.explained_variance[0], 25 / 35.25, 0.03);
  EXPECT_NEAR(fitted.explained_variance[1], 9 / 35.25, 0.03);
}

TEST(PrincipalComponentsTest, TwoDimensionsAreFullyExplained) {
  const PrincipalComponents fitted = FitPrincipalComponents(Cloud({1, 2}, 100));
  EXPECT_NEAR(fitted.explained_variance[0] + fitted.explained_variance[1], 1, 1e-12);
}

TEST(PrincipalComponentsTest, OtherPointsGoThroughTheSameMap) {
  const PrincipalComponents fitted =
      FitPrincipalComponents(Points({-3, 0, 0, 3, 0, 0, 0, 1, 0, 0, -1, 0}, 3));
  const at::Tensor coordinates = Coordinates(fitted, Points({4, 5, 6, -1, 0, 2}, 3));
  EXPECT_LT(LargestDifference(coordinates, Points({4, 5, -1, 0}, 2)), 1e-12);
}

TEST(PrincipalComponentsTest, SinglePrecisionIsFittedInDouble) {
  const at::Tensor points = Cloud({1, 5, 3}, 100).to(at::kFloat);
  EXPECT_TRUE(at::equal(FitPrincipalComponents(points).directions,
                        FitPrincipalComponents(points.to(at::kDouble)).directions));
}

TEST(PrincipalComponentsTest, WithoutVarianceNothingIsExplained) {
  const at::Tensor same = at::full({4, 3}, 2.0, at::TensorOptions().dtype(at::kDouble));
  const PrincipalComponents fitted = FitPrincipalComponents(same);
  EXPECT_EQ(fitted.explained_variance[0], 0);
  EXPECT_EQ(Coordinates(fitted, same).abs().max().item<double>(), 0);
  EXPECT_EQ(FitPrincipalComponents(same.narrow(0, 0, 1)).explained_variance[1], 0);
}

TEST(PrincipalComponentsTest, OneFeatureHasNoSecondDirection) {
  const PrincipalComponents fitted = FitPrincipalComponents(Points({-1, 0, 4}, 1));
  EXPECT_LT(LargestDifference(Coordinates(fitted, Points({5}, 1)), Points({4, 0}, 2)), 1e-12);
  EXPECT_NEAR(fitted.explained_variance[0], 1, 1e-12);
}

}  // namespace
}  // namespace lengthwise::worker::evaluation
