#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/numeric/testing/drawn_vector.h"

namespace lengthwise::tasks::numeric {
namespace {

using Numbers = std::vector<double>;

catalogue::Parameters With(const std::string& name, catalogue::ParameterValue value) {
  catalogue::Parameters parameters;
  parameters.Set(name, std::move(value));
  return parameters;
}

std::vector<uint32_t> RowsFrom(uint32_t first, uint32_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// The last element is the scratchpad.
TEST(AlgorithmicTest, ComputesExamplesWorkedByHand) {
  const Numbers x = {3, -1, 2, -7, 4, 4, 0};
  EXPECT_EQ(EntryTask(CumulativeSum()).Solve(x), (Numbers{3, 2, 4, -3, 1, 5, 0}));
  EXPECT_EQ(EntryTask(CumulativeMin()).Solve(x), (Numbers{3, -1, -1, -7, -7, -7, 0}));
  EXPECT_EQ(EntryTask(CumulativeMedian()).Solve(x), (Numbers{3, 1, 2, 0.5, 2, 2.5, 0}));
  EXPECT_EQ(EntryTask(CumulativeMaxSumSubarray()).Solve(x), (Numbers{3, 3, 4, 4, 4, 8, 0}));
  EXPECT_EQ(EntryTask(Sorting()).Solve(x), (Numbers{-7, -1, 2, 3, 4, 4, 0}));
}

TEST(AlgorithmicTest, SubarrayIsNeverEmpty) {
  EXPECT_EQ(EntryTask(CumulativeMaxSumSubarray()).Solve({-3, -5, -1, 0}), (Numbers{-3, -3, -1, 0}));
}

class EveryAlgorithmTest : public ::testing::TestWithParam<TaskEntry> {
 protected:
  const EntryTask task_{GetParam()};
};

// Follows the definition: enumerates every prefix and subarray.
Numbers ByDefinition(const std::string& name, const Numbers& x) {
  Numbers y;
  for (size_t end = 1; end <= x.size(); ++end) {
    Numbers prefix(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(end));
    double best = prefix[0];
    for (size_t i = 0; i < end; ++i) {
      for (size_t j = i + 1; j <= end; ++j) {
        best =
            std::max(best, std::accumulate(prefix.begin() + static_cast<std::ptrdiff_t>(i),
                                           prefix.begin() + static_cast<std::ptrdiff_t>(j), 0.0));
      }
    }
    const double sum = std::accumulate(prefix.begin(), prefix.end(), 0.0);
    std::sort(prefix.begin(), prefix.end());
    if (name == "cumulative_sum") y.push_back(sum);
    if (name == "cumulative_min") y.push_back(prefix[0]);
    if (name == "cumulative_median") {
      y.push_back(end % 2 == 1 ? prefix[end / 2] : (prefix[end / 2 - 1] + prefix[end / 2]) / 2);
    }
    if (name == "cumulative_max_sum_subarray") y.push_back(best);
    if (name == "sorting" && end == x.size()) y = prefix;
  }
  return y;
}

TEST_P(EveryAlgorithmTest, SamplesMatchTheDefinition) {
  for (int64_t n = 1; n <= 32; ++n) {
    for (const double scale : {1.0, 3.0}) {
      DrawnVector drawn = task_.Draw({.n = n, .scale = scale}, 5);
      ASSERT_EQ(drawn.inputs.size(), static_cast<size_t>(n) + 1);
      EXPECT_EQ(drawn.inputs.back(), 0) << "scratchpad";
      EXPECT_EQ(drawn.targets.back(), 0) << "scratchpad";
      drawn.inputs.pop_back();
      const Numbers expected = ByDefinition(GetParam().name, drawn.inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(drawn.targets[i], expected[i], 1e-12) << n;
      }
    }
  }
}

TEST_P(EveryAlgorithmTest, ScratchpadIsOptionalAndUnscored) {
  EXPECT_EQ(task_.Mask(3), (std::vector<uint8_t>{1, 1, 1, 0}));
  const EntryTask without(GetParam(), With("scratchpad", false));
  EXPECT_EQ(without.Mask(3), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(without.Draw({.n = 3}, 0).inputs.size(), 3U);
  EXPECT_EQ(without->Rows(8), 8);
  EXPECT_EQ(task_->Rows(8), 9);
}

TEST_P(EveryAlgorithmTest, BatchMadeInPartsIsIdentical) {
  const Domain domain{.n = 4, .scale = 2};
  const auto make = [&](DrawnVector& all, uint32_t first, uint32_t count) {
    SampleRows(*task_, 3, random::Purpose::kTrainingSamples, 7, domain, RowsFrom(first, count),
               {absl::MakeSpan(all.inputs).subspan(size_t{first} * 5, size_t{count} * 5),
                {},
                absl::MakeSpan(all.targets).subspan(size_t{first} * 5, size_t{count} * 5)});
  };
  DrawnVector whole = task_.Blank(4, 10), parts = task_.Blank(4, 10);
  make(whole, 0, 10);
  make(parts, 6, 4);
  make(parts, 0, 1);
  make(parts, 1, 5);
  EXPECT_EQ(whole, parts);
  EXPECT_NE(whole.inputs[0], whole.inputs[5]);
}

TEST_P(EveryAlgorithmTest, RefusesDomainsWithoutSamples) {
  EXPECT_TRUE(task_->Check({.n = 1, .scale = 10}).ok());
  EXPECT_FALSE(task_->Check({.n = 0}).ok());
  EXPECT_FALSE(task_->Check({.n = 8, .scale = 0.5}).ok());
  EXPECT_FALSE(task_->Check({.n = 8, .scale = std::nan("")}).ok());
  EXPECT_FALSE(task_->Check({.n = 8, .scale = HUGE_VAL}).ok());
}

TEST_P(EveryAlgorithmTest, RoundingUnitIsOneOrHalf) {
  EXPECT_EQ(task_->rounding_unit(), GetParam().name == "cumulative_median" ? 0.5 : 1);
}

INSTANTIATE_TEST_SUITE_P(AllTasks, EveryAlgorithmTest,
                         ::testing::Values(CumulativeSum(), CumulativeMin(), CumulativeMedian(),
                                           CumulativeMaxSumSubarray(), Sorting()),
                         [](const auto& info) { return info.param.name; });

struct CommonAnswerError {
  double mean = 0;
  // Standard error of the mean of 1,000 vectors, relative to the mean.
  double relative_error = 0;
};

// The error of the best answer that is the same for all tokens of a vector and for all orders of
// its numbers, over vectors that an evaluation of trials of length 8 draws
// (worker/data/regression_examples.cc): the answer is the mean of the numbers in sorting, and 9/2
// of it in sums.
CommonAnswerError BestCommonAnswerError(const EntryTask& task, bool sums, uint64_t seed,
                                        int64_t scale, uint32_t vectors) {
  constexpr int64_t kN = 8;
  DrawnVector all = task.Blank(kN, vectors);
  SampleRows(*task, seed, random::Purpose::kEvaluationSamples,
             static_cast<uint64_t>(kN * 1'000'000 + scale),
             {.n = kN, .scale = static_cast<double>(scale), .unseen = true}, RowsFrom(0, vectors),
             {absl::MakeSpan(all.inputs), {}, absl::MakeSpan(all.targets)});
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < vectors; ++i) {
    const size_t first = size_t{i} * (kN + 1);
    double mean = 0;
    for (size_t k = 0; k < kN; ++k) mean += all.inputs[first + k] / kN;
    const double answer = sums ? (kN + 1) / 2.0 * mean : mean;
    double error = 0;
    for (size_t k = 0; k < kN; ++k) error += std::pow(all.targets[first + k] - answer, 2) / kN;
    sum += error;
    squares += error * error;
  }
  const double mean = sum / vectors;
  return {mean, std::sqrt((squares / vectors - mean * mean) / 1000) / mean};
}

TEST(AlgorithmicTest, PublishedErrorsOfCommonAnswersAreThoseOfTheTestVectors) {
  std::ifstream file("experiments/reproduced/results/test_draws.csv");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  ASSERT_EQ(line, "task,scale,ours,expected,relative_error");
  int lines = 0;
  for (; std::getline(file, line); ++lines) {
    const std::vector<std::string> columns = absl::StrSplit(line, ',');
    ASSERT_EQ(columns.size(), 5U);
    const bool sums = columns[0] == "cumulative_sum";
    const EntryTask task(sums ? CumulativeSum() : Sorting());
    int64_t scale = 0;
    double ours = 0, expected = 0, relative_error = 0;
    ASSERT_TRUE(absl::SimpleAtoi(columns[1], &scale) && absl::SimpleAtod(columns[2], &ours) &&
                absl::SimpleAtod(columns[3], &expected) &&
                absl::SimpleAtod(columns[4], &relative_error));
    EXPECT_NEAR(BestCommonAnswerError(task, sums, 0, scale, 1000).mean / ours, 1, 1e-4) << line;
    const CommonAnswerError others = BestCommonAnswerError(task, sums, 1, scale, 100'000);
    EXPECT_NEAR(others.mean / expected, 1, 1e-4) << line;
    EXPECT_NEAR(others.relative_error / relative_error, 1, 1e-3) << line;
  }
  EXPECT_EQ(lines, 12);
}

// Given the sample's bounds, its elements are uniform and independent. The largest and the smallest
// of many elements approximate the bounds, and another element's place between them is uniform.
TEST(AlgorithmicSamplingTest, ElementsAreUniformWithinBounds) {
  const EntryTask task(CumulativeSum());
  std::vector<int64_t> places(10);
  for (uint32_t i = 0; i < 2000; ++i) {
    const Numbers x = task.Draw({.n = 400, .scale = 3}, i).inputs;
    const auto [low, high] = std::minmax_element(x.begin() + 1, x.end() - 1);
    const double place = (x[0] - *low) / (*high - *low);
    if (place >= 0 && place < 1) ++places.at(static_cast<size_t>(10 * place));
  }
  EXPECT_TRUE(chomsky::FitsUniform(places));
}

TEST(AlgorithmicSamplingTest, UniformWholeNumbersHaveTheirRange) {
  const EntryTask task(CumulativeSum());
  std::vector<int64_t> counts(12);
  for (uint32_t i = 0; i < 3000; ++i) {
    const Numbers x = task.Draw({.n = 8, .scale = 3, .integers = true}, i).inputs;
    for (size_t place = 0; place < 8; ++place) {
      ASSERT_EQ(x[place], std::floor(x[place]));
      ++counts.at(static_cast<size_t>(x[place] + 6));
    }
  }
  EXPECT_TRUE(chomsky::FitsUniform(counts));
}

TEST(AlgorithmicSamplingTest, BoundedWholeNumbersAreRounded) {
  const EntryTask task(CumulativeSum(), With("integer_inputs", std::string("bounded")));
  for (uint32_t i = 0; i < 500; ++i) {
    const Numbers real = task.Draw({.n = 8, .scale = 3}, i).inputs;
    const Numbers whole = task.Draw({.n = 8, .scale = 3, .integers = true}, i).inputs;
    for (size_t place = 0; place < 8; ++place) {
      EXPECT_EQ(whole[place], std::nearbyint(real[place]));
      EXPECT_FALSE(std::signbit(whole[place]) && whole[place] == 0);
    }
  }
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
