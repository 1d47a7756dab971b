#include "worker/training/step_inputs.h"

#include <set>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/tensor.h"
#include "gtest/gtest.h"

namespace lengthwise::worker::training {
namespace {

// Two members of one row each.
data::Batch TokensAndClasses() {
  return {.rows = 2,
          .tokens_per_row = 3,
          .outputs_per_row = 1,
          .tokens = {1, 2, 3, 4, 5, 6},
          .targets = {7, 8},
          .mask = {1, 0}};
}

data::Batch NumbersAndNumbers() {
  return {.rows = 2,
          .tokens_per_row = 3,
          .outputs_per_row = 3,
          .numbers = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6},
          .number_targets = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6},
          .mask = {1, 1, 0, 0, 1, 1}};
}

at::Tensor Written(const StepShape& shape, const data::Batch& samples) {
  at::Tensor block = at::empty({BlockBytes(shape)}, at::kByte);
  auto* bytes = block.mutable_data_ptr<uint8_t>();
  WriteSamples(shape, samples, {9, 8, 7, 6, 5, 4}, bytes);
  WriteStepNumbers(shape, {0.25, 0.5}, bytes);
  return block;
}

template <typename T>
at::Tensor Tensor(const std::vector<T>& values, at::IntArrayRef shape) {
  return at::tensor(values).view(shape);
}

TEST(StepInputsTest, BlockReturnsWhatWasWritten) {
  const data::Batch samples = TokensAndClasses();
  const StepShape shape = ShapeOf(samples, /*members=*/2, /*draws=*/1, /*step_numbers=*/2);
  const StepTensors inputs = TensorsOf(shape, Written(shape, samples), at::kFloat);
  EXPECT_TRUE(at::equal(inputs.batch.input.tokens, Tensor(samples.tokens, {2, 1, 3})));
  EXPECT_FALSE(inputs.batch.input.numbers.defined());
  EXPECT_TRUE(at::equal(inputs.batch.classes, Tensor(samples.targets, {2, 1, 1})));
  EXPECT_FALSE(inputs.batch.number_targets.defined());
  EXPECT_TRUE(at::equal(inputs.batch.mask, Tensor<int64_t>({1, 0}, {2, 1, 1}).to(at::kBool)));
  EXPECT_TRUE(at::equal(inputs.positions, Tensor<double>({9, 8, 7, 6, 5, 4}, {2, 1, 3})));
  EXPECT_TRUE(at::equal(inputs.step_numbers, Tensor<double>({0.25, 0.5}, {2})));
}

TEST(StepInputsTest, NumbersHaveTheNetworksType) {
  const data::Batch samples = NumbersAndNumbers();
  const StepShape shape = ShapeOf(samples, 2, 1, 2);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const StepTensors inputs = TensorsOf(shape, Written(shape, samples), type);
    EXPECT_FALSE(inputs.batch.input.tokens.defined());
    EXPECT_TRUE(at::equal(inputs.batch.input.numbers, Tensor(samples.numbers, {2, 1, 3}).to(type)));
    EXPECT_FALSE(inputs.batch.classes.defined());
    EXPECT_TRUE(
        at::equal(inputs.batch.number_targets, Tensor(samples.number_targets, {2, 1, 3}).to(type)));
    EXPECT_EQ(inputs.step_numbers.scalar_type(), at::kDouble);
  }
}

// Copying the first part transfers all samples, before the step's numbers are known.
TEST(StepInputsTest, StepNumbersFollowTheSamples) {
  const data::Batch samples = TokensAndClasses();
  const StepShape shape = ShapeOf(samples, 2, 1, 2);
  const at::Tensor block = Written(shape, samples);
  at::Tensor other = block.clone();
  other.narrow(0, SampleBytes(shape), BlockBytes(shape) - SampleBytes(shape)).zero_();
  const StepTensors inputs = TensorsOf(shape, other, at::kFloat);
  EXPECT_TRUE(at::equal(inputs.positions, TensorsOf(shape, block, at::kFloat).positions));
  EXPECT_EQ(inputs.step_numbers.abs().max().item<double>(), 0);
}

TEST(StepInputsTest, DifferentWorkHasDifferentShapes) {
  data::Batch longer = TokensAndClasses();
  longer.tokens_per_row = 4;
  longer.tokens.resize(8);
  const std::set<StepShape> shapes = {ShapeOf(TokensAndClasses(), 2, 1, 2),
                                      ShapeOf(TokensAndClasses(), 1, 1, 2),
                                      ShapeOf(TokensAndClasses(), 2, 5, 2),
                                      ShapeOf(NumbersAndNumbers(), 2, 1, 2),
                                      ShapeOf(longer, 2, 1, 2),
                                      ShapeOf(TokensAndClasses(), 2, 1, 2)};
  EXPECT_EQ(shapes.size(), 5);
}

TEST(StepInputsTest, RejectsBatchOfAnotherShape) {
  const StepShape shape = ShapeOf(TokensAndClasses(), 2, 1, 2);
  data::Batch longer = TokensAndClasses();
  longer.tokens.push_back(1);
  at::Tensor block = at::empty({BlockBytes(shape)}, at::kByte);
  EXPECT_ANY_THROW(
      WriteSamples(shape, longer, {9, 8, 7, 6, 5, 4}, block.mutable_data_ptr<uint8_t>()));
}

}  // namespace
}  // namespace lengthwise::worker::training
