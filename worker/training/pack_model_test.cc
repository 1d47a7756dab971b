#include "worker/training/pack_model.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/testing/replaying_graphs.h"
#include "worker/training/testing/train_step.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::ElementsAre;

MATCHER_P2(IsRange, first, count, "") { return arg.first == first && arg.count == count; }

const checkpoints::CheckpointHeader kHeader = {
    .step = 1, .program_version = "0", .fingerprint = "f"};

class PackModelTest : public ::testing::Test {
 protected:
  // Three members with their own seeds.
  std::unique_ptr<PackModel> Create(bool members_together) {
    return Create(blueprint_, members_together, /*counts=*/nullptr);
  }

  // Steps are recorded unless `counts` is null.
  static std::unique_ptr<PackModel> Create(const Blueprint& blueprint, bool members_together,
                                           GraphCounts* counts) {
    Device device = OpenDevice("cpu", 1).value();
    PrepareThread(device);
    device.members_together = members_together;
    if (counts != nullptr) {
      device.make_graph_pool = [counts] { return std::make_unique<ReplayingGraphs>(*counts); };
    }
    const std::vector<MemberSeeds> members = {{1, 2}, {3, 4}, {5, 6}};
    auto model = CreatePackModel(blueprint, members, device,
                                 [](const std::string& text) { ADD_FAILURE() << text; });
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  // Makes a step of each member at its own learning rate.
  static std::vector<StepMeasurement> Train(PackModel& model, int64_t step,
                                            const std::vector<int64_t>& members) {
    std::vector<double> learning_rates;
    for (const int64_t member : members) {
      learning_rates.push_back(1e-3 * static_cast<double>(member + 1));
    }
    return TrainStep(model, step, members, learning_rates);
  }

  const Blueprint blueprint_ = MakeBlueprint(TinyTrial()).value();
};

TEST_F(PackModelTest, RangesFollowTheDevice) {
  EXPECT_THAT(Create(false)->Ranges({0, 1, 2}),
              ElementsAre(IsRange(0, 1), IsRange(1, 1), IsRange(2, 1)));
  EXPECT_THAT(Create(true)->Ranges({0, 1, 2}), ElementsAre(IsRange(0, 3)));
  EXPECT_THAT(Create(true)->Ranges({0, 2}), ElementsAre(IsRange(0, 1), IsRange(2, 1)));
}

// Computes members together on the CPU, as on a GPU. Rounding differs, and Adam amplifies it.
TEST_F(PackModelTest, MembersLearnTheSameTogetherAndAlone) {
  const auto alone = Create(false);
  const auto together = Create(true);
  for (int64_t step = 1; step <= 20; ++step) {
    // The middle one is dropped on the way.
    const std::vector<int64_t> members =
        step <= 10 ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0, 2};
    const auto expected = Train(*alone, step, members);
    const auto actual = Train(*together, step, members);
    ASSERT_EQ(actual.size(), members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      EXPECT_NEAR(actual[i].loss, expected[i].loss, 1e-4) << "step " << step << ", member " << i;
      EXPECT_NEAR(actual[i].gradient_norm, expected[i].gradient_norm, 1e-3);
    }
  }
  const auto go_on = [] { return true; };
  const auto scores = together->Score({0, 3}, 6, 50, go_on, {});
  ASSERT_EQ(scores->size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const auto expected = alone->Score({i, 1}, 6, 50, go_on, {});
    EXPECT_NEAR((*scores)[static_cast<size_t>(i)].loss, (*expected)[0].loss, 1e-4) << i;
    EXPECT_NEAR((*scores)[static_cast<size_t>(i)].accuracy, (*expected)[0].accuracy, 0.02) << i;
  }
}

TEST_F(PackModelTest, StepChangesOnlyItsMembers) {
  const auto model = Create(false);
  std::map<int64_t, std::string> before;
  for (int64_t i = 0; i < 3; ++i) before[i] = model->Save(i, kHeader);
  EXPECT_EQ(Train(*model, 1, {0, 2}).size(), 2);
  EXPECT_NE(model->Save(0, kHeader), before[0]);
  EXPECT_EQ(model->Save(1, kHeader), before[1]);
  EXPECT_NE(model->Save(2, kHeader), before[2]);
}

TEST_F(PackModelTest, StepUsesItsLearningRate) {
  const auto still = Create(false);
  const std::string before = still->Save(0, kHeader);
  // Adam's moments change even at a negligible rate, so the test compares them through the next
  // step.
  (void)TrainStep(*still, 1, {0, 1}, {1e-300, 1e-3});
  const auto model = Create(false);
  EXPECT_EQ(model->Save(0, kHeader), before);
  const float loss = TrainStep(*model, 2, {0}, {1e-3})[0].loss;
  EXPECT_EQ(TrainStep(*still, 2, {0}, {1e-3})[0].loss, loss)
      << "the first step changed no parameter";
}

TEST_F(PackModelTest, CheckpointMovesModelToAnotherMember) {
  const auto model = Create(false);
  for (int64_t step = 1; step <= 3; ++step) Train(*model, step, {0});
  const std::string saved = model->Save(0, kHeader);
  const auto other = Create(false);
  ASSERT_TRUE(other->Load(2, saved, "f").ok());
  EXPECT_EQ(other->Save(2, kHeader), saved);
  EXPECT_FALSE(other->Load(1, saved, "another").ok());
}

// With two equally likely outputs, an untrained model has a loss of about ln 2 and an accuracy of
// about a half.
TEST_F(PackModelTest, UntrainedModelScoresAtChance) {
  const auto scores = Create(false)->Score({0, 1}, 9, 500, [] { return true; }, {});
  EXPECT_NEAR((*scores)[0].accuracy, 0.5, 0.05);
  EXPECT_GE((*scores)[0].loss, std::log(2.0) - 0.02);
  EXPECT_LE((*scores)[0].loss, 1.5);
}

// Works like a GPU, on the CPU: generates the next step's samples ahead and replays steps.
TEST_F(PackModelTest, RecordedStepsMatchUnrecordedSteps) {
  struct Case {
    const char *encoding, *precision = "float32", *optimizer = "adam";
  };
  for (const auto& [encoding, precision, optimizer] :
       {Case{"sin_cos"}, Case{"alibi"}, Case{"relative"}, Case{"t5"}, Case{"relative", "float64"},
        Case{"relative", "bfloat16"}, Case{"sin_cos", "float32", "sgd"}, Case{"formula"}}) {
    v1::TrialSpecification trial = TinyTrial();
    SetEncoding(encoding, trial);
    trial.mutable_training()->set_precision(precision);
    trial.mutable_training()->mutable_optimizer()->set_name(optimizer);
    const Blueprint blueprint = MakeBlueprint(trial).value();
    GraphCounts counts;
    const auto plain = Create(blueprint, true, nullptr),
               recorded = Create(blueprint, true, &counts);
    for (int64_t step = 1; step <= 30; ++step) {
      // The middle one is dropped on the way.
      const std::vector<int64_t> members =
          step <= 15 ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0, 2};
      const auto expected = Train(*plain, step, members), actual = Train(*recorded, step, members);
      for (size_t i = 0; i < members.size(); ++i) {
        EXPECT_EQ(actual[i].loss, expected[i].loss) << encoding << ", step " << step;
        EXPECT_EQ(actual[i].accuracy, expected[i].accuracy);
        EXPECT_EQ(actual[i].gradient_norm, expected[i].gradient_norm);
      }
    }
    for (int64_t member = 0; member < 3; ++member) {
      EXPECT_EQ(plain->Save(member, kHeader), recorded->Save(member, kHeader)) << encoding;
    }
    EXPECT_GT(counts.replayed, 10) << encoding;
  }
}

TEST_F(PackModelTest, StepsWithDropoutAreNotRecorded) {
  v1::TrialSpecification trial = TinyTrial();
  (*trial.mutable_network()->mutable_parameters())["dropout"].set_number_value(0.1);
  const Blueprint blueprint = MakeBlueprint(trial).value();
  GraphCounts counts;
  const auto model = Create(blueprint, true, &counts);
  for (int64_t step = 1; step <= 5; ++step) Train(*model, step, {0, 1, 2});
  EXPECT_EQ(counts.recorded, 0);
}

}  // namespace
}  // namespace lengthwise::worker::training
