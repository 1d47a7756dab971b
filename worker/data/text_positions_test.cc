#include "worker/data/text_positions.h"

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/catalogue.h"
#include "tasks/packing.h"
#include "worker/data/testing/addition_texts.h"

namespace lengthwise::worker::data {
namespace {

constexpr int64_t kMaxPosition = 2048;
constexpr uint64_t kSeed = 7;

models::PositionPolicy Randomized(int64_t blocks = 1) {
  catalogue::Parameters parameters;
  parameters.Set("randomized", true);
  parameters.Set("max_position", kMaxPosition);
  parameters.Set("draws", std::string(blocks == 1 ? "shared" : "per_block"));
  return models::PositionPolicy(parameters, blocks);
}

// Returns the positions of group `g` of a pass in draw `s`.
std::vector<double> OfGroup(const TextPositions& drawn, const TextPass& pass, size_t g,
                            int64_t s = 0) {
  const auto begin = drawn.positions.begin() + s * drawn.count + drawn.first[g];
  return {begin, begin + pass.groups[g].length};
}

// Positions of tokens 0, n / 2 and n - 1 of `n`, summed over draws.
struct Sums {
  double first = 0, middle = 0, last = 0;

  void Add(const std::vector<double>& positions) {
    first += positions.front();
    middle += positions[positions.size() / 2];
    last += positions.back();
  }
};

// The i-th smallest of n numbers drawn from {0, ..., L - 1} has the mean i (L + 1) / (n + 1) - 1
// and a variance below L^2 / (4 n).
void ExpectUniformSubsets(const Sums& sums, int64_t n, int draws) {
  const auto mean = [n](int64_t i) {
    return static_cast<double>(i * (kMaxPosition + 1)) / static_cast<double>(n + 1) - 1;
  };
  const double five_deviations =
      5 * static_cast<double>(kMaxPosition) / std::sqrt(4.0 * static_cast<double>(n) * draws);
  EXPECT_NEAR(sums.first / draws, mean(1), five_deviations) << n;
  EXPECT_NEAR(sums.middle / draws, mean(n / 2 + 1), five_deviations) << n;
  EXPECT_NEAR(sums.last / draws, mean(n), five_deviations) << n;
}

// Applies to training, beside longer examples, and to evaluations.
TEST(TextPositionsTest, LengthsAreDistributedAsInEvaluations) {
  const TextExamples text = AdditionTexts(AdditionTraining());
  const models::PositionPolicy policy = Randomized();
  const int64_t shortest = text.task().LongestExample(2), longest = text.task().LongestExample(9);
  constexpr int kSteps = 100;
  Sums trained_short, trained_long, evaluated;
  for (int64_t step = 1; step <= kSteps; ++step) {
    const std::vector<TextPass> passes = text.TrainingPasses(kSeed, step);
    ASSERT_EQ(passes.front().groups.front().length, shortest);
    ASSERT_EQ(passes.back().groups.back().length, longest);
    trained_short.Add(
        OfGroup(PositionsOfPass(policy, kSeed, step, passes.front()), passes.front(), 0));
    trained_long.Add(OfGroup(PositionsOfPass(policy, kSeed, step, passes.back()), passes.back(),
                             passes.back().groups.size() - 1));
    evaluated.Add(policy.DrawBatch(static_cast<uint64_t>(step),
                                   random::Purpose::kEvaluationPositions, 2, shortest));
  }
  ExpectUniformSubsets(evaluated, shortest, kSteps);
  ExpectUniformSubsets(trained_short, shortest, kSteps);
  ExpectUniformSubsets(trained_long, longest, kSteps);
}

TEST(TextPositionsTest, LengthHasOneDrawPerStep) {
  const TextExamples text = AdditionTexts(AdditionTraining());
  const models::PositionPolicy policy = Randomized();
  const std::vector<TextPass> passes = text.TrainingPasses(kSeed, 3);
  ASSERT_GE(passes.size(), 2u);
  ASSERT_EQ(passes[0].groups.back().length, passes[1].groups.front().length)
      << "some length has examples in the next pass, too";
  const auto of = [&](int64_t step, size_t pass, size_t group, uint64_t seed = kSeed) {
    return OfGroup(PositionsOfPass(policy, seed, step, passes[pass]), passes[pass], group);
  };
  const size_t last = passes[0].groups.size() - 1;
  EXPECT_EQ(of(3, 0, last), of(3, 1, 0));
  EXPECT_NE(of(3, 0, last), of(4, 0, last));
  EXPECT_NE(of(3, 0, last), of(3, 0, last, kSeed + 1));
  const std::vector<double> shorter = of(3, 0, 0);
  std::vector<double> prefix = of(3, 0, last);
  prefix.resize(shorter.size());
  EXPECT_NE(prefix, shorter);
}

TEST(TextPositionsTest, BlocksMayHaveTheirOwnDraws) {
  const TextExamples text = AdditionTexts(AdditionTraining());
  const std::vector<TextPass> passes = text.TrainingPasses(kSeed, 3);
  const TextPositions drawn = PositionsOfPass(Randomized(3), kSeed, 3, passes[0]);
  EXPECT_EQ(static_cast<int64_t>(drawn.positions.size()), 3 * drawn.count);
  std::set<std::vector<double>> different;
  for (size_t g = 0; g < passes[0].groups.size(); ++g) {
    for (int64_t s = 0; s < 3; ++s) {
      const std::vector<double> positions = OfGroup(drawn, passes[0], g, s);
      for (size_t i = 1; i < positions.size(); ++i) ASSERT_LT(positions[i - 1], positions[i]);
      different.insert(positions);
    }
  }
  EXPECT_EQ(different.size(), 3 * passes[0].groups.size());
}

// Lets encodings compute their values for shared positions once.
TEST(TextPositionsTest, PlainPositionsAreShared) {
  const TextExamples text = AdditionTexts(AdditionTraining());
  for (const TextPass& pass : text.TrainingPasses(kSeed, 3)) {
    const TextPositions plain = PositionsOfPass(models::PositionPolicy({}), kSeed, 3, pass);
    EXPECT_EQ(plain.count, pass.groups.back().length);
    for (size_t g = 0; g < pass.groups.size(); ++g) EXPECT_EQ(plain.first[g], 0);
    for (int64_t i = 0; i < plain.count; ++i) {
      EXPECT_EQ(plain.positions[static_cast<size_t>(i)], i);
    }
  }
}

using Positioned = std::multiset<std::pair<std::vector<int64_t>, std::vector<double>>>;

// The sequences of a step that attend to themselves, with tokens and positions.
Positioned Made(const v1::Training& training, const models::PositionPolicy& policy) {
  Positioned made;
  for (const TextPass& pass : AdditionTexts(training).TrainingPasses(kSeed, 3)) {
    const TextPositions drawn = PositionsOfPass(policy, kSeed, 3, pass);
    auto token = pass.tokens.begin();
    for (size_t g = 0; g < pass.groups.size(); ++g) {
      for (int64_t i = 0; i < pass.groups[g].examples; ++i) {
        made.emplace(std::vector<int64_t>(token, token + pass.groups[g].length),
                     OfGroup(drawn, pass, g));
        token += pass.groups[g].length;
      }
    }
  }
  return made;
}

// The same, by the definition of packing.
Positioned Defined(bool attend_across, bool restart) {
  const v1::Training training = AdditionTraining();
  const tasks::PackedBatch batch = tasks::PackTrainingBatch(
      AdditionTexts(training).task(), {.seed = kSeed, .smallest_size = 2, .largest_size = 9}, 3,
      {.sequences = training.batch_size(), .length = kTokens, .positions_restart = restart});
  Positioned defined;
  std::vector<int64_t> tokens;
  std::vector<double> positions;
  for (size_t place = 0; place <= batch.tokens.size(); ++place) {
    const bool ends = place == batch.tokens.size() || place % kTokens == 0 ||
                      batch.segments[place] == tasks::kNoExample ||
                      (!attend_across && batch.segments[place] != batch.segments[place - 1]);
    if (ends && !tokens.empty()) {
      defined.emplace(tokens, positions);
      tokens.clear();
      positions.clear();
    }
    if (place == batch.tokens.size() || batch.segments[place] == tasks::kNoExample) continue;
    tokens.push_back(batch.tokens[place]);
    positions.push_back(static_cast<double>(batch.positions[place]));
  }
  return defined;
}

TEST(TextPositionsTest, PackingModesHaveTheirPositions) {
  for (const bool across : {false, true}) {
    for (const bool restart : {false, true}) {
      v1::Training training = AdditionTraining();
      training.mutable_packing()->set_attend_across(across);
      training.mutable_packing()->set_reset_positions(restart);
      EXPECT_EQ(Made(training, models::PositionPolicy({})), Defined(across, restart))
          << across << restart;
    }
    v1::Training training = AdditionTraining();
    training.mutable_packing()->set_attend_across(across);
    EXPECT_EQ(Made(training, models::PositionPolicy({})), Defined(across, !across));
  }
}

TEST(TextPositionsTest, RandomizedPositionsContinueOrRestart) {
  v1::Training training = AdditionTraining();
  training.mutable_packing()->set_attend_across(true);
  training.mutable_packing()->set_reset_positions(true);
  for (const auto& [tokens, positions] : Made(training, Randomized())) {
    int64_t restarts = 0, ends = 0;
    for (size_t i = 1; i < tokens.size(); ++i) {
      restarts += positions[i] < positions[i - 1];
      ends += tokens[i - 1] == 115;
    }
    EXPECT_LE(restarts, ends);
    EXPECT_GT(restarts, 0);
  }
  training.mutable_packing()->set_attend_across(false);
  training.mutable_packing()->set_reset_positions(false);
  int64_t examples = 0;
  double last = 0;
  for (const auto& [tokens, positions] : Made(training, Randomized())) {
    for (size_t i = 1; i < positions.size(); ++i) EXPECT_LT(positions[i - 1], positions[i]);
    last += static_cast<double>(positions.back());
    ++examples;
  }
  EXPECT_LT(last / static_cast<double>(examples), 0.75 * kMaxPosition)
      << "positions are slices of the sequences' draws, not separate draws per example";
}

}  // namespace
}  // namespace lengthwise::worker::data
