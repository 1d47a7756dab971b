#include "client/watching/experiment_view.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

constexpr char kTrial[] = "experiments/e-1/trials/a";

std::vector<v1::Trial> TwoTrials() {
  std::vector<v1::Trial> trials(2);
  for (int i = 0; i < 2; ++i) {
    trials[i].set_name(i == 0 ? kTrial : "experiments/e-1/trials/b");
    trials[i].set_state(v1::RUNNING);
    v1::TrialSpecification& specification = *trials[i].mutable_specification();
    specification.mutable_task()->set_name("bucket_sort");
    specification.mutable_encoding()->set_name(i == 0 ? "none" : "sin_cos");
    specification.mutable_training()->set_steps(1000);
    specification.mutable_evaluation()->set_seen_up_to(10);
  }
  return trials;
}

v1::Event MakeEvent(int64_t position) {
  v1::Event event;
  event.set_position(position);
  event.set_trial(kTrial);
  return event;
}

v1::Event Running(int64_t position, int32_t attempt, int64_t resumed_from_step) {
  v1::Event event = MakeEvent(position);
  event.set_attempt(attempt);
  event.mutable_state_change()->set_from(v1::QUEUED);
  event.mutable_state_change()->set_to(v1::RUNNING);
  event.mutable_state_change()->set_worker("w");
  event.mutable_state_change()->set_resumed_from_step(resumed_from_step);
  return event;
}

v1::Event Points(int64_t position, const std::vector<std::pair<int64_t, float>>& points) {
  v1::Event event = MakeEvent(position);
  for (const auto& [step, loss] : points) {
    event.mutable_training_points()->add_steps(step);
    event.mutable_training_points()->add_losses(loss);
  }
  return event;
}

v1::Event Accuracy(int64_t position, int64_t step, double at_10, double at_20) {
  v1::Event event = MakeEvent(position);
  event.set_step(step);
  event.mutable_length_accuracies()->add_lengths(10);
  event.mutable_length_accuracies()->add_accuracies(at_10);
  event.mutable_length_accuracies()->add_lengths(20);
  event.mutable_length_accuracies()->add_accuracies(at_20);
  event.mutable_length_accuracies()->set_seen_accuracy(at_10);
  event.mutable_length_accuracies()->set_unseen_accuracy(at_20);
  return event;
}

TEST(ExperimentViewTest, TrialWithAPointHasStarted) {
  ExperimentView view(TwoTrials(), /*from_beginning=*/true);
  view.Apply(Running(1, 1, 0));
  EXPECT_EQ(view.trials()[0].phase, v1::TrialProgress::PHASE_UNSPECIFIED);
  // The first report of progress may come later than the first point.
  view.Apply(Points(2, {{100, 2.0f}}));
  EXPECT_EQ(view.trials()[0].phase, v1::TrialProgress::TRAINING);
  view.Apply(Running(3, 2, 100));
  EXPECT_EQ(view.trials()[0].phase, v1::TrialProgress::PHASE_UNSPECIFIED);
}

TEST(ExperimentViewTest, FoldsEventsIntoTrials) {
  ExperimentView view(TwoTrials(), /*from_beginning=*/true);
  EXPECT_EQ(view.trials()[0].state, v1::QUEUED);  // the events will tell
  EXPECT_TRUE(view.Apply(Running(1, 1, 0)));
  EXPECT_TRUE(view.Apply(Points(2, {{100, 2.0f}, {200, 1.5f}})));
  EXPECT_TRUE(view.Apply(Accuracy(3, 200, 0.75, 0.25)));
  const TrialView& trial = view.trials()[0];
  EXPECT_EQ(trial.state, v1::RUNNING);
  EXPECT_EQ(trial.label, "none");
  EXPECT_EQ(trial.steps_done, 200);
  EXPECT_FLOAT_EQ(*trial.loss(), 1.5f);
  EXPECT_EQ(trial.accuracies.at(200).seen, 0.75);
  EXPECT_EQ(trial.accuracies.at(200).unseen, 0.25);
  EXPECT_DOUBLE_EQ(view.fraction(), 0.1);  // a fifth of one of two trials
  EXPECT_EQ(view.Counts().running(), 1);
  EXPECT_EQ(view.Counts().queued(), 1);
}

TEST(ExperimentViewTest, LateWatchTakesStatesFromTrials) {
  ExperimentView view(TwoTrials(), /*from_beginning=*/false);
  EXPECT_EQ(view.Counts().running(), 2);
}

TEST(ExperimentViewTest, AddsNewTrials) {
  std::vector<v1::Trial> trials = TwoTrials();
  ExperimentView view({trials[1]}, true);
  EXPECT_EQ(view.trials()[0].label, "sin_cos");
  v1::Event done = MakeEvent(1);
  done.set_trial(trials[1].name());
  done.mutable_state_change()->set_to(v1::SUCCEEDED);
  view.Apply(done);
  EXPECT_TRUE(view.all_ended());
  EXPECT_FALSE(view.Apply(Running(2, 1, 0)));

  trials[0].mutable_specification()->set_weight_seed(7);
  view.AddTrials(trials);
  EXPECT_FALSE(view.all_ended());
  EXPECT_EQ(view.trials()[0].label, "none seeds 7/0");
  EXPECT_EQ(view.trials()[0].state, v1::QUEUED);  // the events will tell
  EXPECT_EQ(view.Find(trials[1].name())->state, v1::SUCCEEDED);
  EXPECT_EQ(view.Find(trials[1].name())->label, "sin_cos seed 0");
  EXPECT_DOUBLE_EQ(view.fraction(), 0.5);
  EXPECT_TRUE(view.Apply(Running(2, 1, 0)));
  EXPECT_EQ(view.trials()[0].state, v1::RUNNING);
}

TEST(ExperimentViewTest, AppliesAnEventOnce) {
  ExperimentView view(TwoTrials(), true);
  EXPECT_TRUE(view.Apply(Points(7, {{100, 2.0f}})));
  EXPECT_FALSE(view.Apply(Points(7, {{100, 9.0f}})));
  EXPECT_FALSE(view.Apply(Points(6, {{100, 9.0f}})));
  EXPECT_FLOAT_EQ(*view.trials()[0].loss(), 2.0f);
}

TEST(ExperimentViewTest, IgnoresOtherExperiments) {
  ExperimentView view(TwoTrials(), true);
  v1::Event event = Running(1, 1, 0);
  event.set_trial("experiments/e-2/trials/a");
  EXPECT_FALSE(view.Apply(event));
}

TEST(ExperimentViewTest, ResumedAttemptDropsValuesAfterCheckpoint) {
  ExperimentView view(TwoTrials(), true);
  view.Apply(Running(1, 1, 0));
  view.Apply(Points(2, {{100, 2.0f}, {200, 1.5f}, {300, 1.0f}}));
  view.Apply(Accuracy(3, 100, 0.5, 0.1));
  view.Apply(Accuracy(4, 300, 0.9, 0.3));
  view.Apply(Running(5, 2, 200));
  const TrialView& trial = view.trials()[0];
  EXPECT_EQ(trial.steps_done, 200);
  EXPECT_EQ(trial.losses.size(), 2u);  // the checkpoint's own step stays
  EXPECT_FLOAT_EQ(*trial.loss(), 1.5f);
  EXPECT_EQ(trial.accuracies.size(), 1u);
  EXPECT_EQ(trial.accuracies.count(100), 1u);
  // The resumed attempt repeats the steps.
  view.Apply(Points(6, {{300, 1.0f}}));
  EXPECT_EQ(view.trials()[0].steps_done, 300);
}

TEST(ExperimentViewTest, DoesNotGrowWithTheLengthOfTraining) {
  ExperimentView view(TwoTrials(), true);
  view.Apply(Running(1, 1, 0));
  for (int64_t step = 1; step <= 10'000; ++step) {
    view.Apply(Points(1 + step, {{step, 1.0f / static_cast<float>(step)}}));
  }
  EXPECT_LT(view.trials()[0].losses.size(), 100u);
  EXPECT_FLOAT_EQ(*view.trials()[0].loss(), 1e-4f);
}

v1::TrialProgress Training(int32_t attempt, int64_t done, double speed) {
  v1::TrialProgress progress;
  progress.set_trial(kTrial);
  progress.set_attempt(attempt);
  progress.set_phase(v1::TrialProgress::TRAINING);
  progress.set_done(done);
  progress.set_total(1000);
  progress.set_steps_per_second(speed);
  progress.set_loss(0.5f);
  return progress;
}

TEST(ExperimentViewTest, EstimatesTheTimeLeftFromTheSpeed) {
  ExperimentView view(TwoTrials(), true);
  EXPECT_FALSE(view.time_left().has_value());
  view.Apply(Running(1, 1, 0));
  view.Apply(Training(1, 500, 50));
  // 500 steps of this trial and 1,000 of the queued one.
  EXPECT_EQ(*view.time_left(), absl::Seconds(30));
  EXPECT_FLOAT_EQ(*view.trials()[0].loss(), 0.5f);
}

TEST(ExperimentViewTest, MeanSinceThePreviousPointIsTheLoss) {
  ExperimentView view(TwoTrials(), true);
  view.Apply(Running(1, 1, 0));
  v1::Event event = Points(2, {{10, 0.25f}});
  event.mutable_training_points()->add_mean_losses(1.5f);
  view.Apply(event);
  view.Apply(Training(1, 11, 50));
  EXPECT_FLOAT_EQ(*view.trials()[0].loss(), 1.5f);
}

TEST(ExperimentViewTest, NewAttemptHasNoLoss) {
  ExperimentView view(TwoTrials(), true);
  view.Apply(Running(1, 1, 0));
  v1::TrialProgress progress = Training(1, 500, 50);
  progress.set_loss(std::numeric_limits<float>::quiet_NaN());
  view.Apply(progress);
  EXPECT_FALSE(view.trials()[0].loss().has_value());
  EXPECT_EQ(view.trials()[0].steps_done, 500);
}

TEST(ExperimentViewTest, IgnoresProgressOfEarlierAttempts) {
  ExperimentView view(TwoTrials(), true);
  view.Apply(Running(1, 2, 0));
  view.Apply(Training(1, 500, 50));
  EXPECT_EQ(view.trials()[0].steps_done, 0);
}

TEST(ExperimentViewTest, EndedTrialHasNoSpeed) {
  ExperimentView view(TwoTrials(), true);
  view.Apply(Running(1, 1, 0));
  view.Apply(Training(1, 500, 50));
  v1::Event done = MakeEvent(2);
  done.mutable_state_change()->set_from(v1::RUNNING);
  done.mutable_state_change()->set_to(v1::SUCCEEDED);
  view.Apply(done);
  view.Apply(Training(1, 600, 50));  // late
  EXPECT_EQ(view.steps_per_second(), 0);
  EXPECT_DOUBLE_EQ(view.trials()[0].fraction(), 1);
  EXPECT_FALSE(view.all_ended());
}

TEST(TrialLabelsTest, NameOnlyDifferences) {
  std::vector<v1::Trial> trials = TwoTrials();
  const auto texts = [&trials] {
    std::vector<std::string> texts;
    for (const TrialLabel& label : TrialLabels(trials)) texts.push_back(label.Text());
    return texts;
  };
  EXPECT_EQ(texts(), (std::vector<std::string>{"none", "sin_cos"}));
  trials[1].mutable_specification()->set_weight_seed(3);
  trials[1].mutable_specification()->set_data_seed(3);
  trials[1].mutable_specification()->mutable_encoding()->set_label("randomized");
  EXPECT_EQ(texts(), (std::vector<std::string>{"none seed 0", "randomized seed 3"}));
  trials.resize(1);
  EXPECT_EQ(texts(), std::vector<std::string>{"none"});
}

}  // namespace
}  // namespace lengthwise::client
