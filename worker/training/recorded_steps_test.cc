#include "worker/training/recorded_steps.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ATen/ops/equal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/parameters/layout.h"
#include "worker/training/replaying_graphs.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr StepShape kShape = {
    .members = 2, .rows = 2, .tokens_per_row = 1, .outputs_per_row = 1, .step_numbers = 1};
constexpr StepKey kKey = {.range = {.first = 1, .count = 2}, .shape = kShape};

// Three members of four parameters, and "training" that adds a step's first number to the key's.
class RecordedStepsTest : public testing::Test {
 protected:
  RecordedStepsTest() : arena_(Layout(), 3, at::kFloat, at::kCPU) {}

  static const models::ParameterLayout& Layout() {
    static const auto& layout = *new models::ParameterLayout([] {
      models::ParameterLayout made;
      made.Add("a", {4}, {.kind = models::Initializer::Kind::kZeros});
      return made;
    }());
    return layout;
  }

  std::unique_ptr<RecordedSteps> Create(bool can_record = true) {
    return std::make_unique<RecordedSteps>(
        arena_, std::make_unique<ReplayingGraphs>(counts_, can_record),
        [this](const std::string& text) { warnings_.push_back(text); });
  }

  // `unseen` is of the host: no recording sees that it has changed.
  RecordedSteps::Work Adding(double unseen = 0, const StepKey& key = kKey) {
    return [this, unseen, key](const at::Tensor& block) {
      ++works_;
      const at::Tensor number = TensorsOf(key.shape, block, at::kFloat).step_numbers.add(unseen);
      at::Tensor rows = arena_.parameters().narrow(0, key.range.first, key.range.count);
      rows.add_(number.to(at::kFloat));
      arena_.first_moments().narrow(0, key.range.first, key.range.count).add_(1);
      return rows.select(1, 0).clone();
    };
  }

  // What was measured: the parameters after the step.
  std::vector<float> Make(RecordedSteps& steps, double number, double unseen = 0,
                          const StepKey& key = kKey) {
    at::Tensor block = steps.Block(key);
    WriteStepNumbers(key.shape, {number}, block.mutable_data_ptr<uint8_t>());
    const at::Tensor measured = steps.Run(key, block, Adding(unseen, key)).contiguous();
    const float* values = measured.const_data_ptr<float>();
    return {values, values + measured.numel()};
  }

  models::ParameterArena arena_;
  GraphCounts counts_;
  std::vector<std::string> warnings_;
  int works_ = 0;
};

TEST_F(RecordedStepsTest, StepsAreReplayedOnceASecondOneHasShownThatTheyMayBe) {
  const auto steps = Create();
  EXPECT_THAT(Make(*steps, 1), ElementsAre(1, 1));
  EXPECT_EQ(counts_.recorded, 1);
  EXPECT_EQ(counts_.replayed, 0);
  EXPECT_THAT(Make(*steps, 10), ElementsAre(11, 11));
  EXPECT_EQ(counts_.replayed, 1);
  EXPECT_EQ(works_, 3) << "operation by operation, and then both ways";
  EXPECT_THAT(Make(*steps, 100), ElementsAre(111, 111));
  EXPECT_THAT(Make(*steps, 1000), ElementsAre(1111, 1111));
  EXPECT_EQ(counts_.recorded, 1);
  EXPECT_EQ(counts_.replayed, 3);
  EXPECT_EQ(arena_.first_moments()[1][0].item<float>(), 4) << "each step was made once";
  EXPECT_EQ(arena_.parameters()[0][0].item<float>(), 0) << "another member";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RecordedStepsTest, ARecordedKeyHasItsNumbersAtTheSamePlace) {
  const auto steps = Create();
  Make(*steps, 1);
  EXPECT_EQ(steps->Block(kKey).const_data_ptr(), steps->Block(kKey).const_data_ptr());
}

TEST_F(RecordedStepsTest, EachKeyHasItsOwnRecording) {
  const auto steps = Create();
  StepKey longer = kKey, fewer = kKey;
  longer.shape.tokens_per_row = 2;
  fewer.range = {.first = 2, .count = 1};
  for (int round = 0; round < 3; ++round) {
    for (const StepKey& key : {kKey, longer, fewer}) Make(*steps, 1, 0, key);
  }
  EXPECT_EQ(counts_.recorded, 3);
  EXPECT_EQ(counts_.replayed, 6);
  EXPECT_EQ(arena_.parameters()[1][0].item<float>(), 6);
  EXPECT_EQ(arena_.parameters()[2][0].item<float>(), 9);
}

// As dropout's masks, if a network were to draw them on the host and not say so.
TEST_F(RecordedStepsTest, ARecordingThatMissesWhatHasChangedIsNotUsed) {
  const auto steps = Create();
  EXPECT_THAT(Make(*steps, 1, 0.5), ElementsAre(1.5, 1.5));
  EXPECT_THAT(Make(*steps, 1, 0.25), ElementsAre(2.75, 2.75));
  EXPECT_THAT(Make(*steps, 1, 0.125), ElementsAre(3.875, 3.875));
  EXPECT_EQ(counts_.replayed, 1);
  EXPECT_EQ(counts_.alive, 0);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("differs from the same step made anew")));
  EXPECT_EQ(arena_.first_moments()[1][0].item<float>(), 3) << "each step was made once";
}

TEST_F(RecordedStepsTest, TrainingGoesOnWhereNothingCanBeRecorded) {
  const auto steps = Create(/*can_record=*/false);
  EXPECT_THAT(Make(*steps, 1), ElementsAre(1, 1));
  EXPECT_THAT(Make(*steps, 10), ElementsAre(11, 11));
  EXPECT_EQ(works_, 2);
  EXPECT_EQ(counts_.alive, 0);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("not permitted while recording")))
      << "once, and the first line alone";
  EXPECT_THAT(warnings_[0], testing::Not(HasSubstr("more)")));
}

// A diverged member's numbers are the same bits made either way.
TEST_F(RecordedStepsTest, WhatIsNotANumberIsNoDifference) {
  const auto steps = Create();
  arena_.parameters()[1].fill_(std::nan(""));
  for (int i = 0; i < 3; ++i) Make(*steps, 1);
  EXPECT_EQ(counts_.replayed, 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RecordedStepsTest, SoManyKeysAreNotRecordedAtWill) {
  const auto steps = Create();
  StepKey key = kKey;
  for (int64_t tokens = 1; tokens <= 200; ++tokens) {
    key.shape.tokens_per_row = tokens;
    for (int i = 0; i < 3; ++i) Make(*steps, 1, 0, key);
  }
  EXPECT_EQ(counts_.recorded, 128);
  EXPECT_EQ(arena_.parameters()[1][0].item<float>(), 600);
}

}  // namespace
}  // namespace lengthwise::worker::training
