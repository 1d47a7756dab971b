#include "models/encodings/positions.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

random::Stream SomeStream(uint64_t step) { return {7, random::Purpose::kTrainingPositions, step}; }

catalogue::Parameters Randomized(int64_t max_position) {
  catalogue::Parameters parameters;
  parameters.Set("randomized", true);
  parameters.Set("max_position", max_position);
  return parameters;
}

TEST(PositionPolicyTest, CountsFromZeroUnlessRandomized) {
  catalogue::Parameters plain;
  plain.Set("randomized", false);
  plain.Set("max_position", int64_t{2048});
  const std::vector<int64_t> expected = {0, 1, 2, 3};
  EXPECT_EQ(PositionPolicy(plain).Draw(SomeStream(0), 4), expected);
  // Encodings without positions have no such parameters.
  EXPECT_EQ(PositionPolicy({}).Draw(SomeStream(0), 4), expected);
  EXPECT_FALSE(PositionPolicy({}).randomized());
}

TEST(PositionPolicyTest, RandomizedPositionsAreDifferentSortedAndBelowL) {
  const PositionPolicy policy(Randomized(50));
  std::set<int64_t> seen;
  for (uint64_t step = 0; step < 200; ++step) {
    const std::vector<int64_t> positions = policy.Draw(SomeStream(step), 20);
    ASSERT_EQ(positions.size(), 20U);
    for (size_t i = 1; i < positions.size(); ++i) EXPECT_LT(positions[i - 1], positions[i]);
    EXPECT_GE(positions.front(), 0);
    EXPECT_LT(positions.back(), 50);
    seen.insert(positions.begin(), positions.end());
  }
  EXPECT_EQ(seen.size(), 50U);
}

TEST(PositionPolicyTest, DrawIsAFunctionOfItsStream) {
  const PositionPolicy policy(Randomized(2048));
  EXPECT_EQ(policy.Draw(SomeStream(3), 30), policy.Draw(SomeStream(3), 30));
  EXPECT_NE(policy.Draw(SomeStream(3), 30), policy.Draw(SomeStream(4), 30));
}

TEST(PositionPolicyTest, OffsetsStartAtZeroAndReachLMinusOne) {
  catalogue::Parameters parameters = Randomized(5);
  parameters.Set("distances", std::string("offsets"));
  EXPECT_EQ(PositionPolicy(parameters).Draw(SomeStream(0), 5),
            (std::vector<int64_t>{0, 1, 2, 3, 4}));
  for (uint64_t step = 0; step < 50; ++step) {
    const std::vector<int64_t> offsets = PositionPolicy(parameters).Draw(SomeStream(step), 3);
    EXPECT_EQ(offsets[0], 0);
    EXPECT_LT(0, offsets[1]);
    EXPECT_LT(offsets[1], offsets[2]);
    EXPECT_LT(offsets[2], 5);
  }
}

TEST(PositionPolicyTest, UnsortedPositionsAreTheSameSetInRandomOrder) {
  catalogue::Parameters parameters = Randomized(30);
  parameters.Set("sorted", false);
  int ascending = 0;
  for (uint64_t step = 0; step < 100; ++step) {
    std::vector<int64_t> positions = PositionPolicy(parameters).Draw(SomeStream(step), 10);
    for (size_t i = 1; i < 10; ++i) ascending += positions[i - 1] < positions[i];
    std::sort(positions.begin(), positions.end());
    EXPECT_EQ(positions, PositionPolicy(Randomized(30)).Draw(SomeStream(step), 10));
  }
  // Half of 900 neighbours, within five standard deviations.
  EXPECT_NEAR(ascending, 450, 5 * 10);
}

TEST(PositionPolicyTest, BatchTakesOneDrawOrOnePerBlock) {
  constexpr auto kPurpose = random::Purpose::kTrainingPositions;
  catalogue::Parameters parameters = Randomized(2048);
  parameters.Set("draws", std::string("shared"));
  const PositionPolicy shared(parameters, 3);
  EXPECT_EQ(shared.draws(), 1);
  EXPECT_EQ(shared.DrawBatch(7, kPurpose, 4, 10), shared.Draw(SomeStream(4), 10));

  parameters.Set("draws", std::string("per_block"));
  const PositionPolicy per_block(parameters, 3);
  EXPECT_EQ(per_block.draws(), 3);
  const std::vector<int64_t> batch = per_block.DrawBatch(7, kPurpose, 4, 10);
  ASSERT_EQ(batch.size(), 30U);
  for (uint32_t block = 0; block < 3; ++block) {
    const std::vector<int64_t> draw(batch.begin() + 10 * block, batch.begin() + 10 * (block + 1));
    EXPECT_EQ(draw, shared.Draw(random::Stream(7, kPurpose, 4, block), 10)) << block;
  }
}

TEST(PositionPolicyTest, EvaluationsMayCountFromZero) {
  catalogue::Parameters parameters = Randomized(2048);
  parameters.Set("draws", std::string("per_block"));
  const PositionPolicy drawn(parameters, 2);
  parameters.Set("randomized_at_evaluation", false);
  const PositionPolicy plain(parameters, 2);
  constexpr auto kTraining = random::Purpose::kTrainingPositions;
  constexpr auto kEvaluation = random::Purpose::kEvaluationPositions;
  EXPECT_EQ(plain.DrawBatch(7, kTraining, 4, 3), drawn.DrawBatch(7, kTraining, 4, 3));
  EXPECT_EQ(plain.DrawBatch(7, kEvaluation, 4, 3), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_NE(drawn.DrawBatch(7, kEvaluation, 4, 3), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
}

TEST(CheckPositionsTest, RefusesOptionsOfRandomizedPositionsForPlainOnes) {
  catalogue::Parameters parameters = Randomized(100);
  parameters.Set("sorted", false);
  parameters.Set("draws", std::string("per_block"));
  parameters.Set("randomized_at_evaluation", false);
  std::vector<catalogue::Problem> problems;
  CheckPositions(parameters, 50, "encodings[1]", problems);
  EXPECT_TRUE(problems.empty());
  parameters.Set("randomized", false);
  CheckPositions(parameters, 50, "encodings[1]", problems);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].field, "encodings[1].sorted");
  EXPECT_EQ(problems[1].field, "encodings[1].randomized_at_evaluation");
  EXPECT_EQ(problems[2].field, "encodings[1].draws");
}

TEST(CheckPositionsTest, RefusesSequencesLongerThanL) {
  std::vector<catalogue::Problem> problems;
  CheckPositions(Randomized(100), 100, "encodings[1]", problems);
  EXPECT_TRUE(problems.empty());
  CheckPositions(Randomized(100), 101, "encodings[1]", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "encodings[1].max_position");
  EXPECT_NE(problems[0].description.find("100"), std::string::npos);
  EXPECT_NE(problems[0].description.find("101"), std::string::npos);
}

TEST(CheckPositionsTest, PlainPositionsHaveNoLimit) {
  catalogue::Parameters plain;
  plain.Set("randomized", false);
  plain.Set("max_position", int64_t{10});
  std::vector<catalogue::Problem> problems;
  CheckPositions(plain, 1000, "encodings[0]", problems);
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace lengthwise::models
