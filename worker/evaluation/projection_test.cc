// Tests projections of a network with known activations: at depth 0, token and three times the
// place; after its only block, the same swapped and doubled.
#include "worker/evaluation/projection.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/zeros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/encodings/positions.h"
#include "models/networks/network.h"
#include "tasks/catalogue.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::evaluation {
namespace {

using ::testing::ElementsAre;

class TokenAndPlace : public models::Network {
 public:
  at::Tensor Forward(const models::ParameterSet& parameters, const models::NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const models::DropoutNumbers* dropout,
                     models::Capture* capture) const override {
    EXPECT_FALSE(capture->keep_attention);
    const at::Tensor& tokens = input.tokens;
    const at::Tensor places = at::arange(tokens.size(2)).mul(3).expand_as(tokens);
    const at::Tensor entering = at::stack({tokens, places}, -1).to(at::kFloat);
    capture->depths = {entering, entering.flip(-1).mul(2)};
    if (++passes_ > 1) {
      for (int more = 0; more < later_depths_; ++more) capture->depths.push_back(entering);
    }
    return at::zeros({tokens.size(0), tokens.size(1), output_length, 2});
  }

  // As a looped network whose later chunks of a length have longer inputs.
  void AddLaterDepths(int depths) { passes_ = 0, later_depths_ = depths; }

 private:
  mutable int passes_ = 0;
  int later_depths_ = 0;
};

struct Point {
  float x, y;
};

class ProjectionTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSeed = 5;
  static constexpr int64_t kSequences = 3;

  ProjectionTest()
      : examples_(data::CreateExamples(tasks::CreateTask("reverse_string", {}).value(), {})) {
    layout_.Add("unused", {1}, {});
    arena_ = std::make_unique<models::ParameterArena>(layout_, 1, at::kFloat, at::kCPU);
  }

  std::vector<v1::Projection> Project(int64_t fitted_length, const std::vector<int32_t>& lengths,
                                      int64_t memory_bytes = int64_t{1} << 30) {
    const Evaluator evaluator(
        *examples_, network_, positions_,
        {.seed = kSeed, .heads = 1, .d_model = 2, .memory_bytes = memory_bytes});
    return ProjectActivations(evaluator, arena_->Members(0, 1), fitted_length, kSequences, lengths);
  }

  // Tokens of the evaluation sequences, row-major.
  std::vector<int32_t> Inputs(int64_t length) {
    data::Batch batch;
    examples_->AppendEvaluation(
        {.seed = kSeed, .n = length, .asked = kSequences, .count = kSequences}, batch);
    std::vector<int32_t> inputs;
    for (int64_t sequence = 0; sequence < kSequences; ++sequence) {
      const auto first = batch.tokens.begin() + sequence * batch.tokens_per_row;
      inputs.insert(inputs.end(), first, first + length);
    }
    return inputs;
  }

  // Indexed by depth, sequence and token.
  static std::vector<Point> Points(const v1::Projection& projection) {
    std::vector<Point> points(projection.coordinates().size() / sizeof(Point));
    std::memcpy(points.data(), projection.coordinates().data(), projection.coordinates().size());
    return points;
  }

  std::unique_ptr<data::Examples> examples_;
  TokenAndPlace network_;
  models::PositionPolicy positions_{catalogue::Parameters()};
  models::ParameterLayout layout_;
  std::unique_ptr<models::ParameterArena> arena_;
};

TEST_F(ProjectionTest, OnePerLengthInOrder) {
  const std::vector<v1::Projection> projections = Project(6, {9, 6, 4});
  std::vector<int32_t> lengths;
  for (const v1::Projection& projection : projections) {
    lengths.push_back(projection.length());
    EXPECT_EQ(projection.tokens(), projection.length());
    EXPECT_EQ(projection.fitted_length(), 6);
    EXPECT_EQ(projection.sequences(), kSequences);
    EXPECT_EQ(projection.depths(), 2);
    EXPECT_EQ(projection.explained_variance_size(), 2 * 2);
    EXPECT_EQ(Points(projection).size(), 2 * kSequences * projection.tokens());
  }
  EXPECT_THAT(lengths, ElementsAre(9, 6, 4));
}

// Two features have two components, so the projection is a rotation, which preserves distances.
TEST_F(ProjectionTest, PointsAreTheInputTokens) {
  const v1::Projection projection = Project(6, {6})[0];
  const std::vector<Point> points = Points(projection);
  const std::vector<int32_t> inputs = Inputs(6);
  const size_t count = inputs.size();
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < count; ++b) {
      const double tokens = inputs[a] - inputs[b];
      const double places = 3 * (static_cast<double>(a % 6) - static_cast<double>(b % 6));
      const double distance = std::hypot(tokens, places);
      EXPECT_NEAR(std::hypot(points[a].x - points[b].x, points[a].y - points[b].y), distance, 1e-4);
      EXPECT_NEAR(std::hypot(points[count + a].x - points[count + b].x,
                             points[count + a].y - points[count + b].y),
                  2 * distance, 1e-4);
    }
  }
  // The variance of places is 9 * 35 / 12; that of tokens is at most 1 / 4.
  EXPECT_GT(projection.explained_variance(0), 0.99);
  EXPECT_NEAR(projection.explained_variance(0) + projection.explained_variance(1), 1, 1e-12);
  EXPECT_NEAR(projection.explained_variance(2), projection.explained_variance(0), 1e-12);
}

TEST_F(ProjectionTest, OtherLengthsUseTheFittedMap) {
  const std::vector<v1::Projection> projections = Project(6, {6, 9});
  const std::vector<Point> fitted = Points(projections[0]), other = Points(projections[1]);
  const std::vector<int32_t> fitted_inputs = Inputs(6), other_inputs = Inputs(9);
  double x = 0, y = 0;
  for (size_t i = 0; i < fitted_inputs.size(); ++i) x += fitted[i].x, y += fitted[i].y;
  EXPECT_NEAR(x, 0, 1e-4);
  EXPECT_NEAR(y, 0, 1e-4);
  // The same token at the same place has the same activations.
  int pairs = 0;
  for (size_t i = 0; i < fitted_inputs.size(); ++i) {
    for (size_t j = 0; j < other_inputs.size(); ++j) {
      if (fitted_inputs[i] != other_inputs[j] || i % 6 != j % 9) continue;
      EXPECT_NEAR(fitted[i].x, other[j].x, 1e-5);
      EXPECT_NEAR(fitted[i].y, other[j].y, 1e-5);
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 0);
}

TEST_F(ProjectionTest, DepthsThatSomeChunksLackAreLeftOut) {
  const auto usual = Project(6, {6}, 1);
  network_.AddLaterDepths(2);
  const auto more = Project(6, {6}, 1);
  EXPECT_EQ(usual[0].depths(), 2);
  EXPECT_EQ(more[0].SerializeAsString(), usual[0].SerializeAsString());
}

TEST_F(ProjectionTest, ChunksDoNotChangeTheResult) {
  const auto whole = Project(6, {9, 6});
  const auto chunked = Project(6, {9, 6}, 1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(whole[i].SerializeAsString(), chunked[i].SerializeAsString());
  }
}

}  // namespace
}  // namespace lengthwise::worker::evaluation
