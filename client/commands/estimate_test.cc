#include "client/commands/estimate.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

v1::TrialSpecification Specification(int64_t steps, int batch_size) {
  v1::TrialSpecification specification;
  specification.mutable_task()->set_name("bucket_sort");
  specification.mutable_network()->set_name("encoder");
  specification.mutable_encoding()->set_name("none");
  specification.mutable_training()->set_steps(steps);
  specification.mutable_training()->set_batch_size(batch_size);
  return specification;
}

specification::GridTrial Planned(int64_t steps, int batch_size) {
  auto pack = std::make_shared<specification::GridPack>();
  pack->specification = Specification(steps, batch_size);
  return {.pack = std::move(pack)};
}

v1::Trial Measured(double training_seconds, double evaluation_seconds) {
  v1::Trial trial;
  *trial.mutable_specification() = Specification(1000, 64);
  trial.set_state(v1::SUCCEEDED);
  trial.set_attempt(1);
  trial.mutable_outcome()->set_training_seconds(training_seconds);
  trial.mutable_outcome()->set_evaluation_seconds(evaluation_seconds);
  return trial;
}

TEST(EstimateTest, ScalesMeasuredTrialsByTheirSteps) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 64));
  grid.trials.push_back(Planned(2000, 64));
  int based_on = 0;
  // On average 11 ms per step and 3 s per evaluation.
  const double seconds = EstimateSeconds(grid, {Measured(10, 2), Measured(12, 4)}, based_on);
  EXPECT_NEAR(seconds, 2500 * 0.011 + 2 * 3, 1e-9);
  EXPECT_EQ(based_on, 2);
}

TEST(EstimateTest, KnowsNothingOfOtherKinds) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 128));
  int based_on = 0;
  EXPECT_LT(EstimateSeconds(grid, {Measured(10, 2)}, based_on), 0);
}

TEST(EstimateTest, IgnoresEvaluations) {
  specification::Grid grid;
  grid.trials.push_back(Planned(1000, 64));
  v1::Trial evaluation = Measured(0, 1);
  evaluation.mutable_specification()->set_evaluated_trial("experiments/e-1/trials/t0");
  int based_on = 0;
  EXPECT_NEAR(EstimateSeconds(grid, {evaluation, Measured(10, 2)}, based_on), 12, 1e-9);
  EXPECT_EQ(based_on, 1);
}

TEST(EstimateTest, IgnoresResumedTrials) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 64));
  v1::Trial resumed = Measured(10, 2);
  resumed.set_attempt(2);
  int based_on = 0;
  EXPECT_LT(EstimateSeconds(grid, {resumed}, based_on), 0);
}

}  // namespace
}  // namespace lengthwise::client
