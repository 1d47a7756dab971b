#include "statistics/correlation.h"

#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::statistics {
namespace {

const std::vector<double> kPeople = {.975, .95, .975, .4, .625, .4, .85, .775, .5};
const std::vector<double> kModels = {1, .93, 1, .6, .2, .53, .93, .8, .6};

// scipy.stats.rankdata, with ties, SciPy 1.17.1.
TEST(CorrelationTest, EqualValuesShareTheirRanksMean) {
  EXPECT_EQ(Ranks(kPeople), (std::vector<double>{8.5, 7, 8.5, 1.5, 4, 1.5, 6, 5, 3}));
}

// scipy.stats.spearmanr and scipy.stats.pearsonr, SciPy 1.17.1.
TEST(CorrelationTest, IsScipys) {
  EXPECT_NEAR(SpearmanCorrelation(kPeople, kModels)->coefficient, 0.8808590390495851, 1e-12);
  EXPECT_NEAR(SpearmanCorrelation(kPeople, kModels)->p_value, 0.0017074313481858763, 1e-12);
  EXPECT_NEAR(PearsonCorrelation(kPeople, kModels)->coefficient, 0.7631827589060471, 1e-12);
  EXPECT_NEAR(PearsonCorrelation(kPeople, kModels)->p_value, 0.01673095038056711, 1e-12);
}

TEST(CorrelationTest, AMonotonousRelationHasSpearmansOne) {
  EXPECT_DOUBLE_EQ(SpearmanCorrelation({1, 2, 3, 4}, {1, 8, 27, 1000})->coefficient, 1);
  EXPECT_EQ(SpearmanCorrelation({1, 2, 3, 4}, {1, 8, 27, 1000})->p_value, 0);
  EXPECT_DOUBLE_EQ(SpearmanCorrelation({1, 2, 3, 4}, {9, 7, 5, 1})->coefficient, -1);
}

TEST(CorrelationTest, NeedsPairsThatVary) {
  EXPECT_EQ(PearsonCorrelation({1, 2, 3}, {1, 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PearsonCorrelation({1, 2}, {1, 2}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SpearmanCorrelation({1, 2, 3}, {5, 5, 5}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lengthwise::statistics
