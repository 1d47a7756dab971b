// Learning-rate schedules agree with values computed from their formulas.

#include <fstream>

#include "gtest/gtest.h"
#include "models/schedules/catalogue.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_folder.h"

namespace lengthwise::golden {
namespace {

TEST(SchedulesTest, WarmUpAndCosineMatchTheFormula) {
  std::ifstream file(Folder("encodings_and_networks") + "/norm_ffn_schedule.json");
  if (!file) GTEST_SKIP() << "no norm_ffn_schedule.json";
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const models::ScheduleEntry* entry : models::ScheduleEntries()) {
    if (entry->name != "warmup_cosine") continue;
    constexpr double kLearningRate = 3e-4;
    std::vector<catalogue::Problem> problems;
    const auto schedule = entry->create(catalogue::Resolve(*entry, {}, "", problems),
                                        {.learning_rate = kLearningRate, .steps = 50'000});
    const auto& steps = golden.at("lr_steps");
    ASSERT_FALSE(steps.empty());
    for (size_t i = 0; i < steps.size(); ++i) {
      const double expected = golden.at("lr").at(i);
      // The file has twelve digits.
      EXPECT_NEAR(kLearningRate * schedule->Factor(steps.at(i)), expected, 1e-11 * expected)
          << "step " << steps.at(i);
    }
    return;
  }
  FAIL() << "no schedule warmup_cosine";
}

}  // namespace
}  // namespace lengthwise::golden
