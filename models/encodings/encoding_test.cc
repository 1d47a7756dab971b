#include "models/encodings/encoding.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full_like.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/randn.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/where.h"
#include "ATen/ops/zeros.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/additive.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/sinusoids.h"
#include "models/encodings/testing/test_formula.h"

namespace lengthwise::models {
namespace {

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

TEST(CreateEncodingTest, CreatesEveryEntryOfTheCatalogue) {
  for (const EncodingEntry* entry : EncodingEntries()) {
    std::vector<catalogue::Problem> problems;
    ParameterLayout layout;
    EXPECT_TRUE(CreateEncoding(entry->name, catalogue::Resolve(*entry, {}, "", problems),
                               {.blocks = 2, .heads = 2, .d_model = 8}, layout)
                    .ok())
        << entry->name;
  }
}

TEST(CreateEncodingTest, UnknownNameIsNotFound) {
  ParameterLayout layout;
  const absl::Status status = CreateEncoding("sin_co", {}, {}, layout).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "unknown encoding \"sin_co\"");
}

TEST(SinusoidsTest, MatchTheFormula) {
  const at::Tensor positions = at::tensor(std::vector<int64_t>{0, 3, -2047});
  const at::Tensor sinusoids = Sinusoids(positions, 6, at::kDouble);
  for (int64_t row = 0; row < 3; ++row) {
    const double position = positions[row].item<double>();
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = position * std::pow(10000, -2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(sinusoids[row][i].item<double>(), std::sin(angle), 1e-12);
      EXPECT_NEAR(sinusoids[row][i + 3].item<double>(), std::cos(angle), 1e-12);
    }
  }
}

TEST(SinusoidsTest, Float32IsExactAtLargePositions) {
  const at::Tensor positions = at::arange(2000, 2048, at::kLong);
  EXPECT_LT(LargestDifference(Sinusoids(positions, 64, at::kFloat).to(at::kDouble),
                              Sinusoids(positions, 64, at::kDouble)),
            6e-8);
}

TEST(SinusoidsTest, DifferencesMatchTheirSinusoids) {
  const at::Tensor positions = at::tensor(std::vector<int64_t>{2, 5, 90, 2040}).view({1, 4});
  const at::Tensor expected =
      Sinusoids(positions.unsqueeze(1).sub(positions.unsqueeze(2)), 16, at::kDouble);
  EXPECT_LT(LargestDifference(SinusoidsOfDifferences(Sinusoids(positions, 16, at::kDouble), 1, 2),
                              expected.narrow(1, 1, 2)),
            1e-12);
}

TEST(AlibiSlopesTest, MatchTheAuthorsCode) {
  EXPECT_EQ(AlibiSlopes(4), (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625}));
  // 6 heads: the slopes of 4, then the first and third of 8.
  EXPECT_EQ(AlibiSlopes(6), (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}));
}

// The relative encoding's term by its definition (relative.cc), one pair of tokens at a time.
at::Tensor RelativeByDefinition(const ParameterSet& parameters, const at::Tensor& distances,
                                const at::Tensor& queries, const at::Tensor& keys) {
  const int64_t heads = queries.size(2), n = queries.size(3), size = queries.size(4);
  at::Tensor term = at::zeros({1, queries.size(1), heads, n, n}, queries.options());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const at::Tensor relative = Sinusoids(distances[i][j], heads * size, at::kDouble)
                                      .matmul(parameters[2][0])
                                      .view({heads, size});
      for (int64_t h = 0; h < heads; ++h) {
        const at::Tensor q = queries[0].select(1, h).select(1, i);  // [B, dh]
        const at::Tensor k = keys[0].select(1, h).select(1, j);
        term[0].select(1, h).select(1, i).select(1, j).copy_(
            k.matmul(parameters[0][0][h])
                .add(q.add(parameters[1][0][h]).matmul(relative[h]))
                .div(std::sqrt(static_cast<double>(size))));
      }
    }
  }
  return term;
}

struct RelativeCase {
  bool randomized;
  std::string distances;
  std::vector<double> positions;
  bool clamped_table = false;
  std::string choice = "counted";
};

class RelativeTest : public ::testing::TestWithParam<RelativeCase> {};

TEST_P(RelativeTest, MatchesItsDefinition) {
  catalogue::Parameters options;
  options.Set("randomized", GetParam().randomized);
  options.Set("distances", GetParam().distances);
  options.Set("clamped_table", GetParam().clamped_table);
  options.Set("positions", GetParam().choice);
  options.Set("max_position", int64_t{600});
  ParameterLayout layout;
  const auto encoding =
      CreateEncoding("relative", options, {.blocks = 1, .heads = 2, .d_model = 8}, layout);
  ASSERT_TRUE(encoding.ok()) << encoding.status();
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  const ParameterSet parameters = arena.Members(0, 1);

  const auto n = static_cast<int64_t>(GetParam().positions.size());
  const at::Tensor positions = at::tensor(GetParam().positions).to(at::kDouble);
  at::Tensor distances = positions.unsqueeze(0).sub(positions.unsqueeze(1));
  if (GetParam().distances == "offsets") {
    const at::Tensor steps = at::arange(n).unsqueeze(0).sub(at::arange(n).unsqueeze(1));
    distances = positions.index_select(0, steps.abs().flatten()).view({n, n}).mul(steps.sign());
    if (GetParam().clamped_table) {
      distances = at::where(steps.lt(0), distances.add(600), at::full_like(distances, 599));
    }
  }
  const at::Tensor queries = at::randn({1, 3, 2, n, 4}, at::kDouble);
  const at::Tensor keys = at::randn({1, 3, 2, n, 4}, at::kDouble);
  EXPECT_LT(LargestDifference(
                (*encoding)->LogitTerm(parameters, 0, positions.unsqueeze(0), queries, keys),
                RelativeByDefinition(parameters, distances, queries, keys)),
            1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    Distances, RelativeTest,
    ::testing::Values(RelativeCase{false, "positions", {0, 1, 2, 3, 4}},
                      RelativeCase{false, "positions", {0}},
                      RelativeCase{true, "positions", {3, 8, 40, 1000}},
                      RelativeCase{true, "offsets", {0, 7, 8, 500}},
                      RelativeCase{true, "offsets", {0, 7, 8, 500}, true},
                      RelativeCase{false, "positions", {7, 8, 9}, false, "shift"},
                      RelativeCase{false, "positions", {-3.5, 0.25, 9}, false, "augmented"}));

// An encoding of one block with two heads of 4 features, in double precision, on 6 tokens.
class OneBlock {
 public:
  OneBlock(const std::string& name, const std::string& choice) {
    const EncodingEntry* const entry = catalogue::Named(EncodingEntries(), name);
    catalogue::Parameters given;
    GiveFormula(name, given);
    if (entry->uses_positions()) given.Set("positions", choice);
    const catalogue::Parameters options = Resolved(EncodingEntries(), name, given);
    CheckEncoding(*entry, options,
                  {.d_model = 8,
                   .heads = 2,
                   .blocks = 1,
                   .longest_sequence = 6,
                   .as_vectors = !entry->is_added,
                   .own_positions = true},
                  "encoding", problems);
    encoding_ =
        CreateEncoding(name, options,
                       {.blocks = 1, .heads = 2, .d_model = 8, .longest_sequence = 6}, layout_)
            .value();
    layout_.Add("other", {1}, {.kind = Initializer::Kind::kOnes});
    arena_ = std::make_unique<ParameterArena>(layout_, 1, at::kDouble, at::kCPU);
    arena_->Initialize(0, 1);
  }

  // Logits of random queries and keys with the encoding's rotation, term and, as far as there is
  // one, the sum of its addition to the embeddings: [1, 1, 2, 6, 6].
  at::Tensor Logits(const std::vector<double>& places) const {
    const ParameterSet parameters = arena_->Members(0, 1);
    const at::Tensor positions = at::tensor(places).unsqueeze(0);
    at::Tensor q = at::arange(48, at::kDouble).sin().view({1, 1, 2, 6, 4});
    at::Tensor k = at::arange(48, at::kDouble).cos().view({1, 1, 2, 6, 4});
    encoding_->Rotate(parameters, 0, positions, q, k);
    at::Tensor logits = q.matmul(k.transpose(-1, -2));
    const at::Tensor term = encoding_->LogitTerm(parameters, 0, positions, q, k);
    if (term.defined()) logits = logits.add(term);
    const at::Tensor added = encoding_->EmbeddingTerm(parameters, 0, positions);
    return added.defined() ? logits.add(added.sum()) : logits;
  }

  std::vector<catalogue::Problem> problems;

 private:
  ParameterLayout layout_;
  std::unique_ptr<Encoding> encoding_;
  std::unique_ptr<ParameterArena> arena_;
};

TEST(PositionsTest, ShiftChangesNoRelativeEncoding) {
  for (const char* name : {"rope", "relative", "alibi", "kerple_log", "t5"}) {
    const OneBlock encoding(name, "shift");
    EXPECT_LT(LargestDifference(encoding.Logits({0, 1, 2, 3, 4, 5}),
                                encoding.Logits({37, 38, 39, 40, 41, 42})),
              1e-12)
        << name;
  }
  const OneBlock absolute("sin_cos", "shift");
  EXPECT_GT(LargestDifference(absolute.Logits({0, 1, 2, 3, 4, 5}),
                              absolute.Logits({37, 38, 39, 40, 41, 42})),
            0.01);
}

TEST(PositionsTest, OnlyTablesAndVectorsRefuseReals) {
  for (const EncodingEntry* entry : EncodingEntries()) {
    if (!entry->uses_positions()) continue;
    const bool counts = entry->name == "learned" || !entry->is_added;
    EXPECT_TRUE(OneBlock(entry->name, "skips").problems.empty()) << entry->name;
    const OneBlock encoding(entry->name, "augmented");
    EXPECT_EQ(encoding.problems.size(), counts ? 1U : 0U) << entry->name;
    if (counts) continue;
    const at::Tensor logits = encoding.Logits({-2.25, -0.5, 1.125, 2, 3.75, 4.5});
    EXPECT_TRUE(at::isfinite(logits).all().item<bool>()) << entry->name;
    if (entry->name == "t5") continue;
    EXPECT_GT(LargestDifference(logits, encoding.Logits({-2, -1, 1, 2, 3, 4})), 1e-9)
        << entry->name;
  }
}

TEST(BesideTest, AddsItsTermsAtCountedPositions) {
  catalogue::Parameters given;
  given.Set("beside", std::string("alibi"));
  ParameterLayout layout;
  const auto pair =
      CreateEncoding("learned", catalogue::Resolved(EncodingEntries(), "learned", given),
                     {.blocks = 1, .heads = 2, .d_model = 8}, layout)
          .value();
  const auto alibi = CreateEncoding("alibi", catalogue::Resolved(EncodingEntries(), "alibi"),
                                    {.blocks = 1, .heads = 2, .d_model = 8}, layout)
                         .value();
  ParameterArena arena(layout, 1, at::kDouble, at::kCPU);
  arena.Initialize(0, 1);
  const ParameterSet parameters = arena.Members(0, 1);
  // Two sequences with their own ids.
  const at::Tensor ids = at::tensor(std::vector<double>{1, 2, 0, 1, 5, 6, 0, 5}).view({1, 2, 4});
  const at::Tensor counted = at::arange(4, at::kDouble).unsqueeze(0);
  EXPECT_TRUE(at::equal(pair->PositionsOfTerms(ids), counted));
  EXPECT_TRUE(at::equal(pair->Terms(parameters, 0, counted, 0, 4).additive,
                        alibi->Terms(parameters, 0, counted, 0, 4).additive));
  const at::Tensor added = EmbeddingTermOf(*pair, parameters, 0, ids);
  EXPECT_TRUE(at::equal(
      added,
      parameters[0].select(0, 0).index_select(0, ids.flatten().to(at::kLong)).view({1, 2, 4, 8})));
}

TEST(PositionsTest, T5RoundsDistancesDown) {
  const OneBlock encoding("t5", "uniform_reals");
  const auto of_first_query = [&](const std::vector<double>& places) {
    return encoding.Logits(places).narrow(3, 0, 1);
  };
  EXPECT_EQ(LargestDifference(of_first_query({0, 2.9, 3, 5.75, 7.5, 99.99}),
                              of_first_query({0, 2, 3, 5, 7, 99})),
            0);
}

}  // namespace
}  // namespace lengthwise::models
