#include "client/commands/estimate.h"

#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  EXPECT_THAT(EstimateSeconds(grid, {Measured(10, 2), Measured(12, 4)}, based_on),
              ElementsAre(DoubleNear(500 * 0.011 + 3, 1e-9), DoubleNear(2000 * 0.011 + 3, 1e-9)));
  EXPECT_EQ(based_on, 2);
}

TEST(EstimateTest, KnowsNothingOfOtherKinds) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 128));
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {Measured(10, 2)}, based_on), IsEmpty());
}

TEST(EstimateTest, PackedSequencesOfOtherSizesAreOtherKinds) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 64));
  v1::Trial measured = Measured(10, 2);
  measured.mutable_specification()->mutable_training()->mutable_packing()->set_tokens(128);
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {measured}, based_on), IsEmpty());
}

TEST(EstimateTest, IgnoresEvaluations) {
  specification::Grid grid;
  grid.trials.push_back(Planned(1000, 64));
  v1::Trial evaluation = Measured(0, 1);
  evaluation.mutable_specification()->set_evaluated_trial("experiments/e-1/trials/t0");
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {evaluation, Measured(10, 2)}, based_on),
              ElementsAre(DoubleNear(12, 1e-9)));
  EXPECT_EQ(based_on, 1);
}

TEST(EstimateTest, IgnoresResumedTrials) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 64));
  v1::Trial resumed = Measured(10, 2);
  resumed.set_attempt(2);
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {resumed}, based_on), IsEmpty());
}

TEST(EstimateTest, CountsTheStepsThatWereTrained) {
  specification::Grid grid;
  grid.trials.push_back(Planned(500, 64));
  v1::Trial stopped = Measured(2, 0);
  stopped.mutable_outcome()->set_training_steps(20);  // of 1,000: it took 0.1 s a step
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {stopped}, based_on), ElementsAre(DoubleNear(50, 1e-9)));
}

TEST(EstimateTest, TimeLimitBoundsTheTraining) {
  specification::Grid grid;
  grid.trials.push_back(Planned(2000, 64));
  auto limited = std::make_shared<specification::GridPack>(*grid.trials[0].pack);
  limited->specification.mutable_training()->set_stop_after_seconds(7);
  grid.trials.push_back({.pack = limited});
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {Measured(10, 2)}, based_on),
              ElementsAre(DoubleNear(22, 1e-9), DoubleNear(9, 1e-9)));
}

TEST(EstimateTest, EvaluationsGrowWithTheirSequences) {
  specification::Grid grid;
  auto planned = std::make_shared<specification::GridPack>();
  planned->specification = Specification(1000, 64);
  v1::Evaluation& evaluation = *planned->specification.mutable_evaluation();
  evaluation.mutable_lengths()->Add(10);
  evaluation.mutable_lengths()->Add(30);
  evaluation.set_sequences(500);
  v1::Trial measured = Measured(10, 2);
  *measured.mutable_specification()->mutable_evaluation() = evaluation;
  measured.mutable_specification()->mutable_evaluation()->set_sequences(50);
  // Ten evaluations during training, each of 20 x 100 tokens beside the last one's 40 x 500.
  evaluation.set_every_steps(100);
  evaluation.mutable_interval_lengths()->Add(20);
  evaluation.set_interval_sequences(100);
  grid.trials.push_back({.pack = planned});
  int based_on = 0;
  EXPECT_THAT(EstimateSeconds(grid, {measured}, based_on),
              ElementsAre(DoubleNear(10 + 2 * 10 * 2, 1e-9)));
}

TEST(EstimateTest, WorkersTakeTrialsInOrder) {
  EXPECT_EQ(TimeOfAll({1, 1, 1, 9}, 1), 12);
  EXPECT_EQ(TimeOfAll({1, 1, 1, 9}, 2), 10) << "one of them trains the last trial alone";
  EXPECT_EQ(TimeOfAll({1, 2}, 16), 2);
}

}  // namespace
}  // namespace lengthwise::client
