#include "models/encodings/positions.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

random::Stream SomeStream(uint64_t step) { return {7, random::Purpose::kTrainingPositions, step}; }

catalogue::Parameters Chosen(const std::string& choice, int64_t max_position = 2048) {
  catalogue::Parameters parameters;
  parameters.Set("positions", choice);
  parameters.Set("max_position", max_position);
  return parameters;
}

catalogue::Parameters Randomized(int64_t max_position) {
  catalogue::Parameters parameters;
  parameters.Set("randomized", true);
  parameters.Set("max_position", max_position);
  return parameters;
}

// The problems' fields, each once.
std::set<std::string> FieldsOf(const std::vector<catalogue::Problem>& problems) {
  std::set<std::string> fields;
  for (const catalogue::Problem& problem : problems) fields.insert(problem.field);
  return fields;
}

TEST(PositionPolicyTest, CountsFromZeroUnlessRandomized) {
  catalogue::Parameters plain;
  plain.Set("randomized", false);
  plain.Set("max_position", int64_t{2048});
  const std::vector<double> expected = {0, 1, 2, 3};
  EXPECT_EQ(PositionPolicy(plain).Draw(SomeStream(0), 4), expected);
  // Encodings without positions have no such parameters.
  EXPECT_EQ(PositionPolicy({}).Draw(SomeStream(0), 4), expected);
  EXPECT_FALSE(PositionPolicy({}).drawn());
}

TEST(PositionPolicyTest, RandomizedPositionsAreDifferentSortedAndBelowL) {
  const PositionPolicy policy(Randomized(50));
  std::set<int64_t> seen;
  for (uint64_t step = 0; step < 200; ++step) {
    const std::vector<double> positions = policy.Draw(SomeStream(step), 20);
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

TEST(PositionPolicyTest, SubsetIsTheRandomizedDraw) {
  for (const bool sorted : {true, false}) {
    catalogue::Parameters subset = Chosen("subset", 50), randomized = Randomized(50);
    subset.Set("sorted", sorted);
    randomized.Set("sorted", sorted);
    EXPECT_EQ(PositionPolicy(subset).Draw(SomeStream(5), 20),
              PositionPolicy(randomized).Draw(SomeStream(5), 20));
  }
  EXPECT_EQ(PositionPolicy(Randomized(50)).name(), "subset");
}

// The mean of the positions of all draws, by place.
std::vector<double> Means(const PositionPolicy& policy, int64_t tokens, int draws) {
  std::vector<double> means(static_cast<size_t>(tokens));
  for (int step = 0; step < draws; ++step) {
    const std::vector<double> drawn = policy.Draw(SomeStream(static_cast<uint64_t>(step)), tokens);
    for (size_t i = 0; i < means.size(); ++i) means[i] += drawn[i] / draws;
  }
  return means;
}

TEST(PositionPolicyTest, UniformRealsAreSortedBelowL) {
  const PositionPolicy policy(Chosen("uniform_reals", 50));
  int integers = 0;
  for (uint64_t step = 0; step < 200; ++step) {
    const std::vector<double> positions = policy.Draw(SomeStream(step), 20);
    EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
    EXPECT_GE(positions.front(), 0);
    EXPECT_LT(positions.back(), 50);
    for (const double position : positions) integers += position == std::floor(position);
  }
  EXPECT_EQ(integers, 0);
  // The i-th smallest of n has the mean i L / (n + 1) and a deviation below L / (2 sqrt(n)).
  const std::vector<double> means = Means(policy, 4, 2500);
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_NEAR(means[i], static_cast<double>(i + 1) * 10, 5 * 12.5 / 50);
  }
  // More tokens than L fit, as between two reals there is always another.
  EXPECT_EQ(policy.Draw(SomeStream(0), 100).size(), 100U);
}

TEST(PositionPolicyTest, ShiftAddsOneOffsetUpToK) {
  catalogue::Parameters parameters = Chosen("shift");
  parameters.Set("random_offset", int64_t{3});
  const PositionPolicy policy(parameters);
  std::set<double> offsets;
  for (uint64_t step = 0; step < 200; ++step) {
    const std::vector<double> positions = policy.Draw(SomeStream(step), 5);
    for (size_t i = 1; i < positions.size(); ++i) EXPECT_EQ(positions[i], positions[i - 1] + 1);
    offsets.insert(positions[0]);
  }
  EXPECT_EQ(offsets, (std::set<double>{0, 1, 2, 3}));
  EXPECT_EQ(policy.Integers(5), 8);
  EXPECT_EQ(PositionPolicy(Chosen("shift")).Integers(5), 505);
}

TEST(PositionPolicyTest, AugmentedScalesShiftsAndJitters) {
  catalogue::Parameters parameters = Chosen("augmented");
  parameters.Set("global_shift", 4.0);
  parameters.Set("local_shift", 0.25);
  parameters.Set("scaling", 2.0);
  const PositionPolicy policy(parameters);
  const PositionPolicy::Bounds bounds = policy.BoundsOf(11);
  double narrowest = 1e9, widest = 0, lowest = 0;
  for (uint64_t step = 0; step < 500; ++step) {
    const std::vector<double> positions = policy.Draw(SomeStream(step), 11);
    // Eleven tokens span 10 steps, at most 0.5 more or less by the local shifts.
    const double scale = (positions.back() - positions.front()) / 10;
    narrowest = std::min(narrowest, scale);
    widest = std::max(widest, scale);
    for (size_t i = 1; i < positions.size(); ++i) {
      EXPECT_GT(positions[i], positions[i - 1] + 0.49 * scale / 1.05);
    }
    EXPECT_GE(positions.front(), bounds.lowest);
    EXPECT_LE(positions.back(), bounds.highest);
    lowest = std::min(lowest, positions.front());
  }
  EXPECT_NEAR(narrowest, 0.5, 0.06);
  EXPECT_NEAR(widest, 2, 0.15);
  EXPECT_LT(lowest, -4) << "shifts go below 0";
  parameters.Set("scaling", 1.0);
  parameters.Set("centered", true);
  const std::vector<double> means = Means(PositionPolicy(parameters), 11, 5000);
  EXPECT_NEAR(means[5], 0, 5 * 4 / std::sqrt(3 * 5000.0));
  EXPECT_NEAR(means[10] - means[0], 10, 0.05);
}

TEST(PositionPolicyTest, SkipsAreTwoChunksBelowL) {
  const PositionPolicy policy(Chosen("skips", 100));
  std::set<double> chunks;
  double last = 0, least = 100;
  for (uint64_t step = 0; step < 2000; ++step) {
    const std::vector<double> positions = policy.Draw(SomeStream(step), 9);
    EXPECT_EQ(positions[0], 0);
    int gaps = 0;
    for (size_t i = 1; i < positions.size(); ++i) {
      EXPECT_GE(positions[i], positions[i - 1] + 1);
      if (positions[i] == positions[i - 1] + 1) continue;
      chunks.insert(static_cast<double>(i));
      ++gaps;
    }
    EXPECT_LE(gaps, 1);
    last = std::max(last, positions.back());
    least = std::min(least, positions.back());
  }
  EXPECT_EQ(chunks, (std::set<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(last, 99);
  EXPECT_EQ(least, 8);
  EXPECT_EQ(policy.Draw(SomeStream(0), 1), (std::vector<double>{0}));
}

TEST(PositionPolicyTest, OnlySubsetAndRealsAreDrawnInEvaluations) {
  constexpr auto kEvaluation = random::Purpose::kEvaluationPositions;
  for (const char* choice : {"counted", "shift", "augmented", "skips"}) {
    EXPECT_EQ(PositionPolicy(Chosen(choice)).DrawBatch(7, kEvaluation, 4, 3),
              (std::vector<double>{0, 1, 2}))
        << choice;
  }
  for (const char* choice : {"subset", "uniform_reals"}) {
    const PositionPolicy policy(Chosen(choice));
    EXPECT_EQ(policy.DrawBatch(7, kEvaluation, 4, 3),
              policy.Draw(random::Stream(7, kEvaluation, 4), 3))
        << choice;
  }
  catalogue::Parameters centered = Chosen("augmented");
  centered.Set("centered", true);
  EXPECT_EQ(PositionPolicy(centered).DrawBatch(7, kEvaluation, 4, 4),
            (std::vector<double>{-1.5, -0.5, 0.5, 1.5}));
}

TEST(PositionPolicyTest, IdsGetOneOffsetInTraining) {
  catalogue::Parameters parameters = Chosen("data", 50);
  parameters.Set("random_offset", int64_t{5});
  const PositionPolicy policy(parameters);
  EXPECT_TRUE(policy.each());
  const std::vector<int32_t> ids = {1, 2, 0, 1, 45};
  constexpr auto kTraining = random::Purpose::kTrainingPositions;
  std::set<double> offsets;
  for (uint64_t step = 0; step < 200; ++step) {
    const std::vector<double> positions = policy.WithOffset(ids, 7, kTraining, step);
    const double offset = positions[0] - 1;
    EXPECT_EQ(positions, (std::vector<double>{1 + offset, 2 + offset, 0, 1 + offset,
                                              std::min(45 + offset, 49.)}));
    offsets.insert(offset);
  }
  EXPECT_EQ(offsets, (std::set<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(policy.WithOffset(ids, 7, random::Purpose::kEvaluationPositions, 3),
            (std::vector<double>{1, 2, 0, 1, 45}));
}

TEST(PositionPolicyTest, SequencesMayHaveTheirOwnDraws) {
  catalogue::Parameters parameters = Chosen("uniform_reals");
  parameters.Set("draws", std::string("per_sequence"));
  const PositionPolicy policy(parameters, 3);
  EXPECT_TRUE(policy.each());
  EXPECT_EQ(policy.draws(), 1);
  constexpr auto kEvaluation = random::Purpose::kEvaluationPositions;
  const std::vector<double> third = policy.Draw(random::Stream(7, kEvaluation, 4, 2), 5);
  EXPECT_EQ(policy.DrawRows(7, kEvaluation, 4, 2, 1, 5), third);
  const std::vector<double> fourth = policy.DrawRows(7, kEvaluation, 4, 3, 1, 5);
  EXPECT_NE(third, fourth);
  std::vector<double> both = third;
  both.insert(both.end(), fourth.begin(), fourth.end());
  EXPECT_EQ(policy.DrawRows(7, kEvaluation, 4, 2, 2, 5), both);
  parameters.Set("positions", std::string("counted"));
  EXPECT_FALSE(PositionPolicy(parameters).each());
}

TEST(PositionPolicyTest, OffsetsStartAtZeroAndReachLMinusOne) {
  catalogue::Parameters parameters = Randomized(5);
  parameters.Set("distances", std::string("offsets"));
  EXPECT_EQ(PositionPolicy(parameters).Draw(SomeStream(0), 5),
            (std::vector<double>{0, 1, 2, 3, 4}));
  for (uint64_t step = 0; step < 50; ++step) {
    const std::vector<double> offsets = PositionPolicy(parameters).Draw(SomeStream(step), 3);
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
    std::vector<double> positions = PositionPolicy(parameters).Draw(SomeStream(step), 10);
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
  const std::vector<double> batch = per_block.DrawBatch(7, kPurpose, 4, 10);
  ASSERT_EQ(batch.size(), 30U);
  for (uint32_t block = 0; block < 3; ++block) {
    const std::vector<double> draw(batch.begin() + 10 * block, batch.begin() + 10 * (block + 1));
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
  EXPECT_EQ(plain.DrawBatch(7, kEvaluation, 4, 3), (std::vector<double>{0, 1, 2, 0, 1, 2}));
  EXPECT_NE(drawn.DrawBatch(7, kEvaluation, 4, 3), (std::vector<double>{0, 1, 2, 0, 1, 2}));
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
  EXPECT_EQ(FieldsOf(problems),
            (std::set<std::string>{"encodings[1].sorted", "encodings[1].randomized_at_evaluation",
                                   "encodings[1].draws"}));
}

TEST(CheckPositionsTest, NamesEveryOptionOfAnotherChoice) {
  catalogue::Parameters parameters = Chosen("uniform_reals");
  parameters.Set("randomized", true);
  parameters.Set("sorted", false);
  parameters.Set("distances", std::string("offsets"));
  parameters.Set("random_offset", int64_t{3});
  parameters.Set("scaling", 2.0);
  parameters.Set("randomized_at_evaluation", false);
  parameters.Set("draws", std::string("per_block"));
  std::vector<catalogue::Problem> problems;
  CheckPositions(parameters, 50, "e", problems);
  EXPECT_EQ(FieldsOf(problems), (std::set<std::string>{"e.randomized", "e.sorted", "e.distances",
                                                       "e.random_offset", "e.scaling"}));
  EXPECT_EQ(problems[0].description,
            "means positions: subset, but positions is uniform_reals; remove one of the two");
  EXPECT_EQ(problems[1].description,
            "needs positions: subset; positions is uniform_reals. Change it, or leave sorted out");
}

TEST(CheckPositionsTest, TablesRefuseRealNumbers) {
  for (const std::string choice : {"uniform_reals", "augmented"}) {
    std::vector<catalogue::Problem> problems;
    CheckIntegerPositions(Chosen(choice), "a table", "e", problems);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].field, "e.positions");
    EXPECT_EQ(problems[0].description,
              choice +
                  " makes real numbers, but a table has a place for each integer; use subset, "
                  "shift or skips");
  }
  for (const char* choice : {"counted", "subset", "shift", "skips"}) {
    std::vector<catalogue::Problem> problems;
    CheckIntegerPositions(Chosen(choice), "a table", "e", problems);
    EXPECT_TRUE(problems.empty()) << choice;
  }
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
