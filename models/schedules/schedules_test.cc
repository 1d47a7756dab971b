#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "models/schedules/catalogue.h"

namespace lengthwise::models {
namespace {

const ScheduleEntry& Entry(absl::string_view name) {
  for (const ScheduleEntry* entry : ScheduleEntries()) {
    if (entry->name == name) return *entry;
  }
  ADD_FAILURE() << "no schedule " << name;
  return *ScheduleEntries()[0];
}

catalogue::Parameters Resolved(const ScheduleEntry& entry, const catalogue::Parameters& given) {
  std::vector<catalogue::Problem> problems;
  catalogue::Parameters parameters = catalogue::Resolve(entry, given, "", problems);
  EXPECT_TRUE(problems.empty());
  return parameters;
}

std::unique_ptr<Schedule> Create(absl::string_view name, const ScheduleContext& context,
                                 const catalogue::Parameters& given = {}) {
  const ScheduleEntry& entry = Entry(name);
  return entry.create(Resolved(entry, given), context);
}

std::vector<catalogue::Problem> Problems(absl::string_view name, const ScheduleContext& context,
                                         const catalogue::Parameters& given = {}) {
  std::vector<catalogue::Problem> problems;
  const ScheduleEntry& entry = Entry(name);
  if (entry.check != nullptr) {
    entry.check(Resolved(entry, given), context, "training.schedule", problems);
  }
  return problems;
}

TEST(SchedulesTest, ConstantNeverChanges) {
  const auto schedule = Create("constant", {.learning_rate = 0.1, .steps = 10});
  EXPECT_EQ(schedule->Factor(1), 1);
  EXPECT_EQ(schedule->Factor(10), 1);
  EXPECT_TRUE(schedule->Restore(schedule->State()).ok());
  EXPECT_EQ(schedule->Restore("1 2").code(), absl::StatusCode::kDataLoss);
}

TEST(SchedulesTest, WarmUpAndCosineReachTheirEnds) {
  const auto schedule = Create("warmup_cosine", {.learning_rate = 3e-4, .steps = 50'000});
  EXPECT_DOUBLE_EQ(schedule->Factor(1), 1.0 / 500);
  EXPECT_DOUBLE_EQ(schedule->Factor(250), 0.5);
  EXPECT_DOUBLE_EQ(schedule->Factor(500), 1);
  // Half-way down the cosine: the mean of 1 and the final factor.
  EXPECT_DOUBLE_EQ(schedule->Factor(500 + 49'500 / 2), 0.55);
  EXPECT_DOUBLE_EQ(schedule->Factor(50'000), 0.1);
}

TEST(SchedulesTest, WarmUpMustEndBeforeTraining) {
  const auto problems = Problems("warmup_cosine", {.steps = 500});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "training.schedule.warmup_steps");
  EXPECT_EQ(problems[0].description, "got 500, expected less than training.steps, 500");
  EXPECT_TRUE(Problems("warmup_cosine", {.steps = 501}).empty());
}

TEST(SchedulesTest, PlateauLowersTheRateAfterPatience) {
  catalogue::Parameters given;
  given.Set("patience", int64_t{2});
  given.Set("factor", 0.5);
  const auto schedule =
      Create("plateau", {.learning_rate = 0.1, .steps = 100, .steps_per_epoch = 2}, given);
  // Sums of two: 4, then 3 (better), then three that are not below 3 - 3e-4.
  const double losses[] = {2, 2, 1, 2, 1.5, 1.5, 2, 1, 1.4999, 1.5};
  int64_t step = 0;
  for (const double loss : losses) {
    EXPECT_EQ(schedule->Factor(step + 1), 1);
    schedule->Observe(++step, loss);
  }
  EXPECT_DOUBLE_EQ(schedule->Factor(step + 1), 0.5);
  // Falls again only after three more checks.
  for (int i = 0; i < 4; ++i) schedule->Observe(++step, 2);
  EXPECT_DOUBLE_EQ(schedule->Factor(step + 1), 0.5);
  for (int i = 0; i < 2; ++i) schedule->Observe(++step, 2);
  EXPECT_DOUBLE_EQ(schedule->Factor(step + 1), 0.25);
}

TEST(SchedulesTest, PlateauMatchesPyTorch) {
  // Values of torch.optim.lr_scheduler.ReduceLROnPlateau of PyTorch 2.11 (factor 0.9, patience 5,
  // min_lr 1e-6, threshold 1e-4, learning rate 5e-4), after a step with each of these losses.
  const std::map<int, double> expected = {{10, 0.0005},
                                          {20, 0.00045000000000000004},
                                          {50, 0.00032805000000000003},
                                          {100, 0.00015690529804500002},
                                          {150, 6.754258588364964e-05},
                                          {200, 2.907486850152005e-05}};
  catalogue::Parameters given;
  given.Set("patience", int64_t{5});
  const auto schedule = Create("plateau", {.learning_rate = 5e-4, .steps_per_epoch = 1}, given);
  for (int epoch = 1; epoch <= 200; ++epoch) {
    const double e = epoch;
    schedule->Observe(epoch, (1 + std::sin(e * e)) / std::sqrt(e) + 1 / (1 + e));
    if (const auto found = expected.find(epoch); found != expected.end()) {
      EXPECT_NEAR(schedule->Factor(epoch + 1) * 5e-4, found->second, 1e-12 * found->second)
          << epoch;
    }
  }
}

TEST(SchedulesTest, PlateauStopsAtTheMinimumRate) {
  catalogue::Parameters given;
  given.Set("patience", int64_t{0});
  const auto schedule = Create("plateau", {.learning_rate = 1e-5, .steps_per_epoch = 1}, given);
  for (int64_t step = 1; step <= 200; ++step) schedule->Observe(step, 1);
  EXPECT_NEAR(schedule->Factor(201) * 1e-5, 1e-6, 1e-8);
}

TEST(SchedulesTest, OnlyAnAwaitedLossChangesTheRate) {
  catalogue::Parameters given;
  given.Set("patience", int64_t{0});
  const auto plateau = Create("plateau", {.learning_rate = 0.1, .steps_per_epoch = 3}, given);
  for (int64_t step = 1; step <= 12; ++step) {
    const double before = plateau->Factor(step);
    plateau->Observe(step, 1);
    EXPECT_EQ(plateau->AwaitsLoss(step), step % 3 == 0) << step;
    // The first check finds an improvement.
    EXPECT_EQ(plateau->Factor(step + 1) != before, step % 3 == 0 && step > 3) << step;
  }
  EXPECT_FALSE(Create("constant", {.learning_rate = 0.1}, {})->AwaitsLoss(3));
}

TEST(SchedulesTest, PlateauResumesFromItsState) {
  const ScheduleContext context = {.learning_rate = 0.1, .steps_per_epoch = 3};
  catalogue::Parameters given;
  given.Set("patience", int64_t{1});
  const auto undisturbed = Create("plateau", context, given);
  auto resumed = Create("plateau", context, given);
  for (int64_t step = 1; step <= 60; ++step) {
    const double loss = 1 + 0.1 * std::sin(static_cast<double>(step));
    undisturbed->Observe(step, loss);
    resumed->Observe(step, loss);
    const std::string state = resumed->State();
    resumed = Create("plateau", context, given);
    ASSERT_TRUE(resumed->Restore(state).ok()) << state;
    ASSERT_EQ(resumed->Factor(step + 1), undisturbed->Factor(step + 1));
  }
  EXPECT_LT(undisturbed->Factor(61), 1);
  for (const char* state : {"", "1 2 3", "0 1 1 1", "x 1 1 1", "1 1 1 -1", "1 1 1 1 1"}) {
    EXPECT_EQ(resumed->Restore(state).code(), absl::StatusCode::kDataLoss) << state;
  }
}

TEST(SchedulesTest, PlateauNeedsEpochs) {
  const auto problems = Problems("plateau", {.steps = 10});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "training.schedule.every_steps");
  EXPECT_TRUE(Problems("plateau", {.steps = 10, .steps_per_epoch = 5}).empty());
}

}  // namespace
}  // namespace lengthwise::models
