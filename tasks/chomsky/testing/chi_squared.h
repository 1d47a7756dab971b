// Pearson's chi-squared test, for tests of distributions.
#ifndef LENGTHWISE_TASKS_CHOMSKY_TESTING_CHI_SQUARED_H_
#define LENGTHWISE_TASKS_CHOMSKY_TESTING_CHI_SQUARED_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::tasks::chomsky {

// Critical value at p = 0.001, by Wilson and Hilferty's approximation: 18.7 instead of 18.5 at 4
// degrees of freedom, and closer with more.
inline double CriticalChiSquared(double degrees_of_freedom) {
  const double spread = 2.0 / (9.0 * degrees_of_freedom);
  return degrees_of_freedom * std::pow(1.0 - spread + 3.0902 * std::sqrt(spread), 3);
}

// Succeeds if `counts` are consistent with draws from `probabilities` at p = 0.001. Probabilities
// need not sum to 1; none may be 0.
inline ::testing::AssertionResult Fits(const std::vector<int64_t>& counts,
                                       const std::vector<double>& probabilities) {
  const auto draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * probabilities.at(i) / total;
    statistic += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
  }
  const double critical = CriticalChiSquared(static_cast<double>(counts.size()) - 1);
  if (statistic < critical) return ::testing::AssertionSuccess();
  auto failure = ::testing::AssertionFailure()
                 << "chi-squared " << statistic << ", critical " << critical << "; counts";
  for (const int64_t count : counts) failure << " " << count;
  return failure;
}

inline ::testing::AssertionResult FitsUniform(const std::vector<int64_t>& counts) {
  return Fits(counts, std::vector<double>(counts.size(), 1.0));
}

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_TESTING_CHI_SQUARED_H_
