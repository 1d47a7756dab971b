#include "statistics/similarity.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lengthwise::statistics {
namespace {

// 1 - scipy.spatial.distance.cosine, SciPy 1.17.1.
TEST(SimilarityTest, CosineIsScipys) {
  EXPECT_NEAR(*CosineSimilarity({1, 2, 3, -4}, {2, 0, -1, 5}), -0.7, 1e-12);
}

TEST(SimilarityTest, CosineDoesNotDependOnLengths) {
  EXPECT_DOUBLE_EQ(*CosineSimilarity({1, 2}, {10, 20}), 1);
  EXPECT_DOUBLE_EQ(*CosineSimilarity({1, 0}, {0, 3}), 0);
}

// scipy.spatial.distance.jensenshannon(p, q) ** 2, SciPy 1.17.1; the second with weights 1 2 3 and
// 3 2 1.
TEST(SimilarityTest, JensenShannonIsTheSquareOfScipys) {
  EXPECT_NEAR(*JensenShannonDivergence({.1, .2, .3, .4, 0}, {.25, .25, .25, 0, .25}),
              0.24440610724204642, 1e-12);
  EXPECT_NEAR(*JensenShannonDivergence({1, 2, 3}, {3, 2, 1}), 0.08720802396075801, 1e-12);
}

TEST(SimilarityTest, JensenShannonIsZeroForTheSameAndLogTwoForDisjointDistributions) {
  EXPECT_EQ(*JensenShannonDivergence({.2, .8}, {.2, .8}), 0);
  EXPECT_NEAR(*JensenShannonDivergence({1, 0, 0}, {0, .5, .5}), std::log(2.0), 1e-14);
}

TEST(SimilarityTest, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(CosineSimilarity({1, 2}, {1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CosineSimilarity({0, 0}, {1, 2}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(JensenShannonDivergence({1, 2}, {1}).ok());
  EXPECT_FALSE(JensenShannonDivergence({1, -2}, {1, 2}).ok());
  EXPECT_FALSE(JensenShannonDivergence({0, 0}, {1, 2}).ok());
  EXPECT_FALSE(JensenShannonDivergence({1, std::nan("")}, {1, 2}).ok());
}

}  // namespace
}  // namespace lengthwise::statistics
