#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/tensor.h"
#include "gtest/gtest.h"
#include "models/encodings/positions.h"
#include "models/networks/language_model.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "tasks/text_task.h"
#include "worker/data/text_examples.h"
#include "worker/data/text_positions.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/pack_model.h"
#include "worker/training/testing/train_step.h"

namespace lengthwise::worker::training {
namespace {

constexpr MemberSeeds kMember = {.weight_seed = 1, .data_seed = 2};

std::unique_ptr<PackModel> Create(const Blueprint& blueprint,
                                  const std::vector<MemberSeeds>& members = {kMember}) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  auto model = CreatePackModel(blueprint, members, device);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Reference for the loss and gradient norm of a step: the model reads each example alone, never a
// packed sequence.
struct Expected {
  double loss = 0;
  double accuracy = 0;
  double gradient_norm = 0;
};

Expected OneByOne(const Blueprint& blueprint, int64_t step) {
  models::ParameterLayout layout;
  const tasks::TextTask& task = blueprint.text->task();
  const auto model =
      models::CreateLanguageModel(blueprint.network.name, blueprint.network.parameters,
                                  blueprint.encoding.name, blueprint.encoding.parameters,
                                  {.input_columns = task.vocabulary(),
                                   .output_columns = task.vocabulary(),
                                   .longest_sequence = blueprint.size.longest_sequence},
                                  layout)
          .value();
  models::ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, kMember.weight_seed);
  arena.gradients().zero_();

  // The step's examples. Each length has its own positions.
  const v1::Training& training = blueprint.training;
  const tasks::TextData data = {.seed = kMember.data_seed,
                                .smallest_size = training.lengths().min(),
                                .largest_size = training.lengths().max()};
  std::vector<std::vector<int64_t>> examples;
  std::vector<std::vector<int32_t>> ids;
  int64_t used = 0, sequences = 0, targets = 0;
  for (uint32_t i = 0;; ++i) {
    const tasks::TextExample example =
        tasks::TrainingExample(task, data, static_cast<uint64_t>(step), i);
    const auto length = static_cast<int64_t>(example.tokens.size());
    if (used + length > training.packing().tokens()) {
      used = 0;
      if (++sequences == training.batch_size()) break;
    }
    used += length;
    targets += length - 1;
    examples.emplace_back(example.tokens.begin(), example.tokens.end());
    ids.push_back(task.Ids(example, example.tokens));
  }
  const models::PositionPolicy policy(blueprint.encoding.parameters);

  Expected expected;
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::vector<int64_t>& example = examples[i];
    const auto length = static_cast<int64_t>(example.size());
    const at::Tensor tokens = at::tensor(example, at::kLong).view({1, length});
    constexpr auto kPurpose = random::Purpose::kTrainingPositions;
    const auto address = static_cast<uint64_t>(step);
    const std::vector<double> positions =
        policy.from_data() ? policy.WithOffset(ids[i], kMember.data_seed, kPurpose, address)
        : policy.each()    ? policy.DrawRows(kMember.data_seed, kPurpose, address,
                                             static_cast<int64_t>(i), 1, length)
                           : data::DrawForLength(policy, kMember.data_seed, step, length);
    const at::Tensor logits =
        model
            ->Forward(arena.Members(0, 1), {.tokens = tokens, .groups = {{1, length}}},
                      at::tensor(positions, at::kDouble).view({1, 1, length}), nullptr, nullptr)
            .select(0, 0)
            .narrow(0, 0, length - 1);
    const at::Tensor next = tokens.select(0, 0).narrow(0, 1, length - 1);
    const at::Tensor loss =
        at::log_softmax(logits, -1).gather(-1, next.unsqueeze(-1)).sum().neg().div(targets);
    loss.backward();
    expected.loss += loss.item<double>();
    expected.accuracy += static_cast<double>(logits.argmax(-1).eq(next).sum().item<int64_t>()) /
                         static_cast<double>(targets);
  }
  expected.gradient_norm = arena.gradients().norm().item<double>();
  return expected;
}

TEST(LanguagePackModelTest, PackedStepMatchesSingleExamples) {
  v1::TrialSpecification trial = TinyTextTrial();
  trial.mutable_training()->set_precision("float64");
  // The step has several passes.
  trial.mutable_training()->set_batch_size(180);
  const Blueprint blueprint = MakeBlueprint(trial).value();
  ASSERT_GT(blueprint.text->TrainingPasses(kMember.data_seed, 1).size(), 1u);
  const Expected expected = OneByOne(blueprint, 1);
  const StepMeasurement measured = TrainStep(*Create(blueprint), 1, {0}, {1e-3})[0];
  EXPECT_NEAR(measured.loss / expected.loss, 1, 1e-6) << "within the precision of float32";
  EXPECT_NEAR(measured.gradient_norm / expected.gradient_norm, 1, 1e-6);
  EXPECT_FLOAT_EQ(measured.accuracy, static_cast<float>(expected.accuracy));
}

// With ids of the task, Abacus with FIRE as its paper has it, and with a draw for each sequence.
TEST(LanguagePackModelTest, OwnPositionsMatchSingleExamples) {
  for (const std::string encoding : {"learned", "rope", "sin_cos"}) {
    v1::TrialSpecification trial = TinyTextTrial();
    trial.mutable_training()->set_precision("float64");
    trial.mutable_encoding()->set_name(encoding);
    trial.mutable_encoding()->clear_parameters();
    auto& options = *trial.mutable_encoding()->mutable_parameters();
    auto& task = *trial.mutable_task()->mutable_parameters();
    options["max_position"].set_number_value(64);
    if (encoding == "sin_cos") {
      options["positions"].set_string_value("uniform_reals");
      options["draws"].set_string_value("per_sequence");
    } else {
      options["positions"].set_string_value("data");
      options["random_offset"].set_number_value(20);
      task["index_hints"].set_bool_value(false);
      task["coupling"].set_string_value(encoding == "learned" ? "abacus" : "digits");
    }
    if (encoding == "learned") options["beside"].set_string_value(R"({"name":"fire","width":8})");
    const absl::StatusOr<Blueprint> blueprint = MakeBlueprint(trial);
    ASSERT_TRUE(blueprint.ok()) << blueprint.status();
    const auto model = Create(*blueprint);
    const Expected expected = OneByOne(*blueprint, 1);
    const StepMeasurement measured = TrainStep(*model, 1, {0}, {1e-2})[0];
    EXPECT_NEAR(measured.loss / expected.loss, 1, 1e-6) << encoding;
    EXPECT_NEAR(measured.gradient_norm / expected.gradient_norm, 1, 1e-6) << encoding;
    float last = measured.loss;
    for (int64_t step = 2; step <= 30; ++step) last = TrainStep(*model, step, {0}, {1e-2})[0].loss;
    EXPECT_LT(last, 0.8 * measured.loss) << encoding;
  }
}

TEST(LanguagePackModelTest, LearnsAndPackMatchesItsMembers) {
  const Blueprint blueprint = MakeBlueprint(TinyTextTrial()).value();
  const auto pack = Create(blueprint, {{1, 2}, {3, 2}, {1, 4}});
  const auto alone = Create(blueprint, {{1, 4}});
  std::vector<StepMeasurement> first, last;
  for (int64_t step = 1; step <= 30; ++step) {
    last = TrainStep(*pack, step, {0, 1, 2}, {1e-2, 1e-2, 1e-2});
    if (step == 1) first = last;
    EXPECT_EQ(TrainStep(*alone, step, {0}, {1e-2})[0].loss, last[2].loss) << step;
  }
  for (size_t i = 0; i < 3; ++i) {
    // 117 tokens, all equally likely before the first step.
    EXPECT_NEAR(first[i].loss, std::log(117.0), 1.0);
    EXPECT_LT(last[i].loss, 0.8 * first[i].loss);
  }
  EXPECT_NE(first[0].loss, first[1].loss) << "other weights";
  EXPECT_NE(first[0].loss, first[2].loss) << "other data";
  const checkpoints::CheckpointHeader header = {
      .step = 30, .program_version = "0", .fingerprint = "f"};
  EXPECT_EQ(pack->Save(2, header), alone->Save(0, header));
}

TEST(LanguagePackModelTest, Bfloat16CheckpointsHoldFloat32) {
  v1::TrialSpecification trial = TinyTextTrial();
  const Blueprint exact = MakeBlueprint(trial).value();
  trial.mutable_training()->set_precision("bfloat16");
  const Blueprint rounded = MakeBlueprint(trial).value();
  const auto model = Create(rounded);
  for (int64_t step = 1; step <= 3; ++step) TrainStep(*model, step, {0}, {1e-3});
  const std::string bytes = model->Save(0, {.step = 3, .program_version = "0", .fingerprint = "f"});
  // Same format as for float32.
  const auto continued = Create(exact);
  ASSERT_TRUE(continued->Load(0, bytes, "f").ok());
  size_t numbers = 0, exact_in_bfloat16 = 0;
  for (size_t end = bytes.size(); end > bytes.size() / 2; end -= sizeof(float)) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + end - sizeof(float), sizeof(float));
    if (bits == 0) continue;  // padding, or moments of tokens that did not occur
    ++numbers;
    if ((bits & 0xffff) == 0) ++exact_in_bfloat16;
  }
  EXPECT_GT(numbers, 1000u);
  EXPECT_LT(exact_in_bfloat16, numbers / 100);
  EXPECT_NE(TrainStep(*continued, 4, {0}, {1e-3})[0].loss,
            TrainStep(*model, 4, {0}, {1e-3})[0].loss);
}

TEST(LanguagePackModelTest, TokensMayAttendAcrossExamples) {
  v1::TrialSpecification trial = TinyTextTrial();
  trial.mutable_training()->mutable_packing()->set_attend_across(true);
  const Blueprint blueprint = MakeBlueprint(trial).value();
  EXPECT_EQ(blueprint.size.longest_sequence, 64);
  const float across = TrainStep(*Create(blueprint), 1, {0}, {1e-3})[0].loss;
  const float within =
      TrainStep(*Create(MakeBlueprint(TinyTextTrial()).value()), 1, {0}, {1e-3})[0].loss;
  EXPECT_NE(across, within);
  EXPECT_NEAR(across, within, 1.0);
}

float LossOfReading(const std::string& encoding, bool across, bool reset, bool randomized) {
  v1::TrialSpecification trial = TinyTextTrial();
  trial.mutable_encoding()->set_name(encoding);
  trial.mutable_encoding()->clear_parameters();
  if (randomized) {
    (*trial.mutable_encoding()->mutable_parameters())["randomized"].set_bool_value(true);
  }
  trial.mutable_training()->set_precision("float64");
  trial.mutable_training()->mutable_packing()->set_attend_across(across);
  trial.mutable_training()->mutable_packing()->set_reset_positions(reset);
  return TrainStep(*Create(MakeBlueprint(trial).value()), 1, {0}, {1e-3})[0].loss;
}

TEST(LanguagePackModelTest, PositionsAreIndependentOfAttention) {
  const std::vector<std::pair<bool, bool>> readings = {
      {false, true}, {false, false}, {true, true}, {true, false}};
  std::set<float> rotated, added, drawn, none;
  for (const auto& [across, reset] : readings) {
    rotated.insert(LossOfReading("rope", across, reset, false));
    added.insert(LossOfReading("fire", across, reset, false));
    drawn.insert(LossOfReading("sin_cos", across, reset, true));
    none.insert(LossOfReading("none", across, reset, false));
  }
  EXPECT_EQ(drawn.size(), 4u);
  EXPECT_EQ(none.size(), 2u) << "without positions only attention matters";
  // Distances within an example are the same if positions continue across examples.
  EXPECT_NEAR(LossOfReading("rope", false, true, false), LossOfReading("rope", false, false, false),
              1e-6);
  EXPECT_GE(rotated.size(), 3u);
  EXPECT_NE(LossOfReading("fire", true, true, false), LossOfReading("fire", true, false, false));
}

}  // namespace
}  // namespace lengthwise::worker::training
