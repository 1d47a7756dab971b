#include "worker/training/recorded_steps.h"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/parameters/layout.h"
#include "worker/training/testing/replaying_graphs.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr StepShape kShape = {
    .members = 2, .rows = 2, .tokens_per_row = 1, .outputs_per_row = 1, .step_numbers = 1};
constexpr StepKey kKey = {.range = {.first = 1, .count = 2}, .shape = kShape};

// Three members of four parameters, and a fake training step that adds the block's first number to
// the parameters of the key's members.
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

  // `unseen` is a host value, whose changes no recording sees.
  RecordedSteps::Work Adding(double unseen = 0, const StepKey& key = kKey) {
    return [this, unseen, key](const at::Tensor& block) {
      ++works_;
      at::Tensor rows = arena_.parameters().narrow(0, key.range.first, key.range.count);
      if (works_ == failing_work_) {
        rows.zero_();
        throw std::runtime_error("out of memory\nand more");
      }
      const at::Tensor number = TensorsOf(key.shape, block, at::kFloat).step_numbers.add(unseen);
      rows.add_(number.to(at::kFloat));
      arena_.first_moments().narrow(0, key.range.first, key.range.count).add_(1);
      return rows.select(1, 0).clone();
    };
  }

  // The measurements: the parameters after the step.
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
  // Number of the call, from 1, that fails halfway.
  int failing_work_ = 0;
};

TEST_F(RecordedStepsTest, StepsAreReplayedAfterVerification) {
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

TEST_F(RecordedStepsTest, RecordedKeyKeepsItsBlock) {
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

// Simulates a network that draws dropout masks on the host without declaring it.
TEST_F(RecordedStepsTest, RecordingWithStaleInputsIsDiscarded) {
  const auto steps = Create();
  EXPECT_THAT(Make(*steps, 1, 0.5), ElementsAre(1.5, 1.5));
  EXPECT_THAT(Make(*steps, 1, 0.25), ElementsAre(2.75, 2.75));
  EXPECT_THAT(Make(*steps, 1, 0.125), ElementsAre(3.875, 3.875));
  EXPECT_EQ(counts_.replayed, 1);
  EXPECT_EQ(counts_.alive, 0);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("differs from the same step run again")));
  EXPECT_EQ(arena_.first_moments()[1][0].item<float>(), 3) << "each step was made once";
}

TEST_F(RecordedStepsTest, TrainingContinuesWithoutRecording) {
  const auto steps = Create(/*can_record=*/false);
  EXPECT_THAT(Make(*steps, 1), ElementsAre(1, 1));
  EXPECT_THAT(Make(*steps, 10), ElementsAre(11, 11));
  EXPECT_EQ(works_, 2);
  EXPECT_EQ(counts_.alive, 0);
  EXPECT_EQ(counts_.freed_memory, 1) << "before the second attempt";
  EXPECT_THAT(warnings_,
              ElementsAre(EndsWith("recording one failed: not permitted while recording")))
      << "one warning, with the first line only";
}

// Simulates an ordinary step that lacks the memory held by recordings.
TEST_F(RecordedStepsTest, FailedStepIsRetriedWithoutRecordings) {
  // The second step runs both ways, which are the second and third calls; the third step has
  // another key and is the fourth call.
  for (const int failing : {2, 3, 4}) {
    const auto steps = Create();
    arena_.parameters().zero_();
    warnings_.clear();
    works_ = 0;
    failing_work_ = failing;
    StepKey key = kKey;
    for (int step = 1; step <= 5; ++step) {
      if (step == 3) key.shape.tokens_per_row = 2;
      EXPECT_THAT(Make(*steps, 1, 0, key), ElementsAre(step, step)) << "work " << failing;
    }
    EXPECT_THAT(warnings_, ElementsAre(EndsWith(": out of memory")));
    EXPECT_EQ(counts_.alive, 0);
  }
}

TEST_F(RecordedStepsTest, FailedReplayRunsTheStep) {
  for (const int failing : {2, 3}) {  // the step that runs both ways; a replay
    const auto steps = Create();
    arena_.parameters().zero_();
    warnings_.clear();
    for (int step = 1; step <= 4; ++step) {
      counts_.replays_fail = step == failing;
      EXPECT_THAT(Make(*steps, 1), ElementsAre(step, step));
    }
    EXPECT_THAT(warnings_, ElementsAre(EndsWith(": the device is full")));
    EXPECT_EQ(counts_.alive, 0);
  }
}

TEST_F(RecordedStepsTest, StepFailingWithoutRecordingsThrows) {
  const auto steps = Create();
  const at::Tensor block = steps->Block(kKey);
  EXPECT_THROW(steps->Run(kKey, block,
                          [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no"); }),
               std::runtime_error);
}

TEST_F(RecordedStepsTest, NondeterminismIsNamedAsTheReason) {
  const auto steps = Create();
  for (int step = 1; step <= 3; ++step) {
    at::Tensor block = steps->Block(kKey);
    WriteStepNumbers(kShape, {1}, block.mutable_data_ptr<uint8_t>());
    steps->Run(kKey, block, [&](const at::Tensor& of) {
      arena_.parameters()[1].add_(++works_);
      return arena_.parameters()[1].clone();
    });
  }
  EXPECT_THAT(warnings_, ElementsAre(EndsWith("run twice gives different bits")));
}

TEST_F(RecordedStepsTest, KeysOfOldRangesAreDropped) {
  const auto steps = Create();
  StepKey other = kKey;
  other.range = {.first = 2, .count = 1};
  for (const StepKey& key : {kKey, other}) Make(*steps, 1, 0, key);
  EXPECT_EQ(counts_.alive, 2);
  steps->KeepOnly({other.range});
  EXPECT_EQ(counts_.alive, 1);
  for (int i = 0; i < 2; ++i) Make(*steps, 1, 0, other);
  EXPECT_EQ(counts_.recorded, 2);
}

// A diverged member's NaNs have the same bits either way.
TEST_F(RecordedStepsTest, NanMatchesItself) {
  const auto steps = Create();
  arena_.parameters()[1].fill_(std::nan(""));
  for (int i = 0; i < 3; ++i) Make(*steps, 1);
  EXPECT_EQ(counts_.replayed, 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RecordedStepsTest, NumberOfRecordedKeysIsLimited) {
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
