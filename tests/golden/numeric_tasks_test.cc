// Compares the tasks on vectors of real numbers, their sampling and their accuracies with the
// reference.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/all_tasks.h"
#include "tasks/numeric/scores.h"
#include "tasks/numeric/value_range.h"
#include "tasks/regression.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::tasks::numeric {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

constexpr ValueRange kTraining = {-2, 2};

TEST(GoldenNumericFilesTest, ThereAreGoldenFiles) {
  EXPECT_EQ(golden::WhyNothingIsIn("encodings_and_networks"), "");
}

class GoldenNumericTasksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = golden::Folder("encodings_and_networks") + "/algorithmic_tasks.json";
    std::ifstream file(path);
    if (!file) GTEST_SKIP() << path << " is absent";
    golden_ = Json::parse(file);
  }
  Json golden_;
};

TEST_F(GoldenNumericTasksTest, TargetsMatchTheReference) {
  for (const TaskEntry& entry : {CumulativeSum(), CumulativeMin(), CumulativeMedian(),
                                 CumulativeMaxSumSubarray(), Sorting()}) {
    catalogue::Parameters given;
    given.Set("scratchpad", false);
    std::vector<catalogue::Problem> problems;
    const auto owner = entry.create(catalogue::Resolve(entry, given, "", problems));
    const auto& task = dynamic_cast<const RegressionTask&>(*owner);
    for (const Json& expected : golden_.at("cases")) {
      auto x = expected.at("x").get<Numbers>();
      const auto y = expected.at(entry.name).get<Numbers>();
      Numbers solved(x.size(), -77);
      task.Solve({.inputs = absl::MakeSpan(x), .targets = absl::MakeSpan(solved)});
      ASSERT_EQ(y.size(), solved.size());
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_NEAR(solved[i], y[i], 1e-9) << entry.name << " n " << y.size();
      }
    }
  }
  EXPECT_FALSE(golden_.at("cases").empty());
}

// Bounds and elements interpolate the same uniform numbers.
TEST_F(GoldenNumericTasksTest, SamplingMatchesTheReference) {
  for (const Json& expected : golden_.at("sampling")) {
    const auto u = expected.at("u").get<Numbers>();
    const ValueRange range = RangeBetween(
        {expected.at("low").get<double>(), expected.at("high").get<double>()}, u.at(0), u.at(1));
    EXPECT_NEAR(range.low, expected.at("gamma_l").get<double>(), 1e-8);
    EXPECT_NEAR(range.high, expected.at("gamma_u").get<double>(), 1e-8);
    const bool rejected = kTraining.Contains(range);
    EXPECT_EQ(!rejected, expected.at("accept").get<bool>());
    const auto x = expected.at("x").get<Numbers>();
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(range.At(u.at(i + 2)), x[i], 1e-9);
  }
}

TEST_F(GoldenNumericTasksTest, RejectionMatchesTheReference) {
  for (const Json& expected : golden_.at("rejection")) {
    const ValueRange range{expected.at("gamma_l").get<double>(),
                           expected.at("gamma_u").get<double>()};
    const bool rejected = expected.at("c").get<double>() > 1 && kTraining.Contains(range);
    EXPECT_EQ(!rejected, expected.at("accept").get<bool>()) << expected;
  }
}

TEST_F(GoldenNumericTasksTest, ClosenessMatchesTheReference) {
  for (const Json& expected : golden_.at("accuracy_closeness")) {
    const auto target = expected.at("target").get<Numbers>();
    const auto prediction = expected.at("prediction").get<Numbers>();
    const std::vector<uint8_t> mask(target.size(), 1);
    const auto close = [&](Closeness closeness) {
      return AllClose(prediction, target, mask, closeness);
    };
    EXPECT_EQ(close(Closeness::kBoth), expected.at("closeness_and").get<bool>()) << expected;
    EXPECT_EQ(close(Closeness::kSum), expected.at("closeness_isclose").get<bool>()) << expected;
    EXPECT_EQ(close(Closeness::kEither), expected.at("closeness_or").get<bool>()) << expected;
  }
}

TEST_F(GoldenNumericTasksTest, RoundingMatchesTheReference) {
  for (const Json& expected : golden_.at("accuracy_rounding")) {
    const auto target = expected.at("target").get<Numbers>();
    const auto prediction = expected.at("prediction").get<Numbers>();
    const std::vector<uint8_t> mask(target.size(), 1);
    EXPECT_EQ(AllRoundToTarget(prediction, target, mask, 1), expected.at("correct").get<bool>());
    EXPECT_TRUE(AllRoundToTarget(prediction, expected.at("rounded").get<Numbers>(), mask, 1));
    EXPECT_TRUE(
        AllRoundToTarget(prediction, expected.at("rounded_half").get<Numbers>(), mask, 0.5));
  }
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
