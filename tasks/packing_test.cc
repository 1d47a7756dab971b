#include "tasks/packing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "tasks/all_tasks.h"

namespace lengthwise::tasks {
namespace {

class PackingTest : public ::testing::Test {
 protected:
  PackingTest() {
    std::vector<catalogue::Problem> problems;
    owner_ = addition::DecimalAddition().create(
        catalogue::Resolve(addition::DecimalAddition(), {}, "", problems));
  }
  const TextTask& task() const { return dynamic_cast<const TextTask&>(*owner_); }

  const TextData data_{.seed = 5, .largest_size = 12};
  const PackingOptions options_{.sequences = 6, .length = 256};

 private:
  std::unique_ptr<Task> owner_;
};

// A batch's examples, read back from its sequences.
struct Unpacked {
  std::vector<TextExample> examples;
  std::vector<size_t> starts;
};

Unpacked Unpack(const PackedBatch& batch) {
  Unpacked unpacked;
  for (size_t place = 0; place < batch.tokens.size(); ++place) {
    if (batch.segments[place] == kNoExample) continue;
    if (place % 256 == 0 || batch.segments[place] != batch.segments[place - 1]) {
      unpacked.examples.emplace_back();
      unpacked.starts.push_back(place);
    }
    unpacked.examples.back().tokens.push_back(batch.tokens[place]);
  }
  return unpacked;
}

TEST_F(PackingTest, KeepsExamplesWholeAndInOrder) {
  const Unpacked unpacked = Unpack(PackTrainingBatch(task(), data_, 3, options_));
  ASSERT_GT(unpacked.examples.size(), 12U);
  for (size_t i = 0; i < unpacked.examples.size(); ++i) {
    EXPECT_EQ(unpacked.examples[i].tokens,
              TrainingExample(task(), data_, 3, static_cast<uint32_t>(i)).tokens);
  }
}

TEST_F(PackingTest, SequencesAreFilledGreedily) {
  const PackedBatch batch = PackTrainingBatch(task(), data_, 3, options_);
  const Unpacked unpacked = Unpack(batch);
  const auto last = static_cast<uint32_t>(unpacked.examples.size());
  for (uint32_t i = 1; i <= last; ++i) {
    const TextExample next = TrainingExample(task(), data_, 3, i);
    const size_t end = unpacked.starts[i - 1] + unpacked.examples[i - 1].tokens.size();
    const bool starts_a_sequence = i == last || unpacked.starts[i] % 256 == 0;
    EXPECT_EQ(starts_a_sequence, (end - 1) % 256 + 1 + next.tokens.size() > 256) << i;
  }
}

// With restarting positions and attention within segments, an example's tokens see exactly what
// they would see alone: the same tokens at the same positions with the same targets.
TEST_F(PackingTest, PackingKeepsPositionsAndTargets) {
  const PackedBatch batch = PackTrainingBatch(task(), data_, 3, options_);
  const Unpacked unpacked = Unpack(batch);
  for (size_t i = 0; i < unpacked.examples.size(); ++i) {
    const std::vector<int32_t>& tokens = unpacked.examples[i].tokens;
    for (size_t j = 0; j < tokens.size(); ++j) {
      const size_t place = unpacked.starts[i] + j;
      EXPECT_EQ(batch.positions[place], static_cast<int32_t>(j));
      EXPECT_EQ(batch.targets[place], j + 1 < tokens.size() ? tokens[j + 1] : kNoTarget);
    }
  }
}

TEST_F(PackingTest, PaddingHasNoExampleAndNoTarget) {
  const PackedBatch batch = PackTrainingBatch(task(), data_, 3, options_);
  int64_t padding = 0;
  for (size_t place = 0; place < batch.tokens.size(); ++place) {
    EXPECT_EQ(batch.segments[place] == kNoExample, batch.tokens[place] == task().padding_token());
    if (batch.segments[place] != kNoExample) continue;
    ++padding;
    EXPECT_EQ(batch.targets[place], kNoTarget);
    EXPECT_EQ(batch.positions[place], 0);
  }
  EXPECT_GT(padding, 0);
}

TEST_F(PackingTest, PositionsCanRunOn) {
  PackingOptions options = options_;
  options.positions_restart = false;
  const PackedBatch batch = PackTrainingBatch(task(), data_, 3, options);
  for (size_t place = 0; place < batch.tokens.size(); ++place) {
    if (batch.segments[place] == kNoExample) continue;
    EXPECT_EQ(batch.positions[place], static_cast<int32_t>(place % 256));
  }
}

TEST_F(PackingTest, LossCanCountOnlyAnswers) {
  PackingOptions options = options_;
  options.answers_only = true;
  const PackedBatch all = PackTrainingBatch(task(), data_, 3, options_);
  const PackedBatch answers = PackTrainingBatch(task(), data_, 3, options);
  const Unpacked unpacked = Unpack(answers);
  EXPECT_EQ(all.tokens, answers.tokens);
  for (size_t i = 0; i < unpacked.examples.size(); ++i) {
    const std::vector<int32_t>& tokens = unpacked.examples[i].tokens;
    const auto equals = std::find(tokens.begin(), tokens.end(), 11) - tokens.begin();
    for (size_t j = 0; j < tokens.size(); ++j) {
      const size_t place = unpacked.starts[i] + j;
      const bool counts = static_cast<std::ptrdiff_t>(j) >= equals;
      EXPECT_EQ(answers.targets[place], counts ? all.targets[place] : kNoTarget);
    }
  }
}

TEST_F(PackingTest, IsAFunctionOfSeedAndStep) {
  const auto tokens = [&](uint64_t seed, uint64_t step) {
    return PackTrainingBatch(task(), {.seed = seed, .largest_size = 12}, step, options_).tokens;
  };
  EXPECT_EQ(tokens(5, 3), tokens(5, 3));
  EXPECT_NE(tokens(5, 3), tokens(5, 4));
  EXPECT_NE(tokens(5, 3), tokens(6, 3));
}

class EpochsTest : public PackingTest {
 protected:
  static constexpr int64_t kExamples = 100;

  // The examples of epoch `epoch`, counted from 0, in that epoch's order.
  std::vector<std::vector<int32_t>> Epoch(const TextData& data, int64_t epoch) const {
    EpochExamples examples(task(), data);
    std::vector<std::vector<int32_t>> found;
    for (int64_t place = 0; place < data.examples; ++place) {
      found.push_back(examples.At(epoch * data.examples + place).tokens);
    }
    return found;
  }

  static std::vector<std::vector<int32_t>> Sorted(std::vector<std::vector<int32_t>> examples) {
    std::sort(examples.begin(), examples.end());
    return examples;
  }

  const TextData set_{.seed = 5, .largest_size = 12, .examples = kExamples};
};

TEST_F(EpochsTest, EveryEpochHasEachExampleOnce) {
  const auto first = Epoch(set_, 0), second = Epoch(set_, 1);
  EXPECT_NE(first, second) << "an order of its own";
  EXPECT_EQ(Sorted(first), Sorted(second));
  // The same examples are drawn with replacement.
  const auto sorted = Sorted(first);
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(std::binary_search(sorted.begin(), sorted.end(),
                                   TrainingExample(task(), set_, 3, i).tokens));
  }
}

TEST_F(EpochsTest, SetSeedFixesTheSetNotItsOrder) {
  TextData one = set_, other = set_;
  other.seed = 6;
  EXPECT_NE(Sorted(Epoch(one, 0)), Sorted(Epoch(other, 0)));
  one.set_seed = other.set_seed = 9;
  EXPECT_NE(Epoch(one, 0), Epoch(other, 0));
  EXPECT_EQ(Sorted(Epoch(one, 0)), Sorted(Epoch(other, 0)));
}

TEST_F(EpochsTest, StepsAreContiguous) {
  EpochExamples examples(task(), set_);
  int64_t place = 0;
  while (place < 2 * kExamples) {
    const EpochBatch step = PackEpochBatch(task(), set_, place, options_);
    const Unpacked unpacked = Unpack(step.batch);
    EXPECT_EQ(step.range.first, place);
    ASSERT_EQ(step.range.end, place + static_cast<int64_t>(unpacked.examples.size()));
    EXPECT_EQ(RangeOfEpochBatch(task(), set_, place, options_).end, step.range.end);
    for (const TextExample& example : unpacked.examples) {
      EXPECT_EQ(example.tokens, examples.At(place++).tokens);
    }
  }
}

TEST_F(PackingTest, SkipsExamplesLongerThanASequence) {
  const PackedBatch batch = PackTrainingBatch(task(), data_, 3, {.sequences = 4, .length = 32});
  // 12 hinted digits have 3 * 2 * 13 + 3 tokens; up to 3 digits fit in 32.
  EXPECT_GT(std::count(batch.segments.begin(), batch.segments.end(), 0), 0);
  const PackedBatch nothing = PackTrainingBatch(task(), data_, 3, {.sequences = 2, .length = 5});
  EXPECT_EQ(std::count(nothing.segments.begin(), nothing.segments.end(), kNoExample), 10);
}

}  // namespace
}  // namespace lengthwise::tasks
