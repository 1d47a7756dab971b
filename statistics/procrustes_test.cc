#include "statistics/procrustes.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::statistics {
namespace {

const std::vector<double> kA = {1, 2, 0, 0, -1, 3, 2, 2, 1, 4, 0, -1};
const std::vector<double> kB = {0, 1, 1, 2, 0, -1, 1, 1, 0, 3, -2, 1};

// R, _ = scipy.linalg.orthogonal_procrustes(A, B); numpy.linalg.norm(A @ R - B), SciPy 1.17.1.
TEST(ProcrustesTest, IsScipys) {
  EXPECT_NEAR(*ProcrustesDistance(kA, kB, 4, 3), 3.168967086878937, 1e-12);
  EXPECT_NEAR(*ProcrustesDistance(std::vector<double>(12, 1.0), kA, 4, 3), 4.964383772683609, 1e-12)
      << "rank one";
  std::vector<double> a, b;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 40; ++j) {
      a.push_back(std::sin(1 + i * 0.7 + j * j * 0.13));
      b.push_back(std::cos(0.3 * i * j));
    }
  }
  EXPECT_NEAR(*ProcrustesDistance(a, b, 16, 40), 21.05515220160724, 1e-11);
}

TEST(ProcrustesTest, IsZeroForATurnedMatrix) {
  std::vector<double> turned(kA.size());
  const double c = std::cos(0.4), s = std::sin(0.4);
  for (size_t row = 0; row < 4; ++row) {
    turned[3 * row] = c * kA[3 * row] - s * kA[3 * row + 2];
    turned[3 * row + 1] = -kA[3 * row + 1];
    turned[3 * row + 2] = s * kA[3 * row] + c * kA[3 * row + 2];
  }
  EXPECT_NEAR(*ProcrustesDistance(kA, turned, 4, 3), 0, 1e-6);
}

TEST(ProcrustesTest, OfAZeroMatrixIsTheOthersNorm) {
  const std::vector<double> zero(12);
  EXPECT_NEAR(*ProcrustesDistance(zero, kB, 4, 3), std::sqrt(23.0), 1e-12);
}

TEST(ProcrustesTest, RefusesOtherShapes) {
  EXPECT_FALSE(ProcrustesDistance(kA, kB, 3, 3).ok());
  EXPECT_FALSE(ProcrustesDistance(kA, {1.0}, 4, 3).ok());
  EXPECT_FALSE(ProcrustesDistance({HUGE_VAL}, {1.0}, 1, 1).ok());
}

}  // namespace
}  // namespace lengthwise::statistics
