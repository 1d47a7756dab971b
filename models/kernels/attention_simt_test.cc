// The kernels of attention_cuda.cu, as they are, in simt_emulator.h: against the formula in double
// precision, in any order of threads and blocks. models/attention/fused_cuda_test.cc runs them on a
// GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/kernels/attention_cuda.h"
#include "models/kernels/attention_launches.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/testing/attention_problem.h"
#include "models/kernels/testing/simt_emulator.h"
#include "models/kernels/testing/simt_memory.h"

namespace lengthwise::kernels {
namespace {

using simt::Emulator;

float* Wanted(std::vector<float>& numbers) { return numbers.empty() ? nullptr : numbers.data(); }

template <typename T>
AttentionInputsOf<T> Inputs(const Problem& problem, const std::vector<T>& qkv) {
  return {.shape = problem.shape,
          .queries = problem.Part(qkv.data(), 0),
          .keys = problem.Part(qkv.data(), 1),
          .values = problem.Part(qkv.data(), 2),
          .terms = problem.Terms()};
}

template <typename T>
Results<float> Compute(const Problem& problem, const Emulator::Options& options = {}) {
  const std::vector<T> qkv = Converted<T>(problem.qkv);
  const std::vector<T> output_gradient = Converted<T>(problem.output_gradient);
  const AttentionInputsOf<T> inputs = Inputs(problem, qkv);
  const AttentionShape& shape = problem.shape;
  Results<float> results(problem);
  std::vector<T> output = Unwritten<T>(static_cast<int64_t>(results.output.size()));
  std::vector<T> qkv_gradient = Unwritten<T>(static_cast<int64_t>(qkv.size()));
  std::vector<float> log_sum_exp =
      Unwritten<float>(shape.members * shape.sequences * shape.heads * shape.queries);
  std::vector<float> workspace = Unwritten<float>(MakeBackwardPlan(shape, inputs.terms).size);
  Emulator device(options);
  LaunchForward(device, inputs, problem.Features(output.data()), log_sum_exp.data());
  LaunchBackward<T>(device, inputs, problem.Features<const T>(output.data()),
                    problem.Features<const T>(output_gradient.data()), log_sum_exp.data(),
                    {.queries = problem.Part(qkv_gradient.data(), 0),
                     .keys = problem.Part(qkv_gradient.data(), 1),
                     .values = problem.Part(qkv_gradient.data(), 2),
                     .additive = Wanted(results.additive),
                     .relative = Wanted(results.relative),
                     .content_bias = Wanted(results.content_bias),
                     .position_bias = Wanted(results.position_bias)},
                    workspace.data());
  EXPECT_EQ(device.problem(), "");
  EXPECT_LE(device.largest_shared_bytes(), 48 * 1024);
  results.output = ToFloats(output);
  results.qkv = ToFloats(qkv_gradient);
  return results;
}

using ShapeAndTerm = std::tuple<int64_t, int64_t, int64_t, Term>;

class AttentionSimtTest : public testing::TestWithParam<ShapeAndTerm> {};

TEST_P(AttentionSimtTest, AgreesWithTheFormulaInDouble) {
  const auto [n, members, head_size, term] = GetParam();
  // Short sequences are several chunks of sequences, and several groups of them.
  const int64_t sequences = n <= 2 ? 75 : n <= 7 ? 41 : n <= 120 ? 2 : 1;
  const Problem problem({.members = members,
                         .sequences = sequences,
                         .heads = n <= 7 ? 2 : 1,
                         .queries = n,
                         .keys = n,
                         .head_size = head_size},
                        term);
  ExpectClose(problem, Compute<float>(problem), ComputeReference(problem));
}

std::string NameOf(const testing::TestParamInfo<ShapeAndTerm>& info) {
  const auto [n, members, head_size, term] = info.param;
  return absl::StrCat(Name(term), "_", n, "tokens_", members, "members_", head_size, "features");
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionSimtTest,
                         testing::Combine(testing::Values(1, 2, 7, 80, 81, 120),
                                          testing::Values(1, 3), testing::Values(8, 16, 64),
                                          testing::ValuesIn(kTerms)),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(LongSequences, AttentionSimtTest,
                         testing::Combine(testing::Values(501), testing::Values(1),
                                          testing::Values(8), testing::ValuesIn(kTerms)),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(
    AllTermsTogether, AttentionSimtTest,
    testing::Combine(testing::Values(7, 81), testing::Values(3), testing::Values(8, 64),
                     testing::Values(Term::kAllWithRelative, Term::kAllWithToeplitz)),
    NameOf);

TEST(AttentionSimtSizesTest, HeadsMayHaveUpTo64Features) {
  for (const int64_t head_size : {1, 2, 5, 12, 21, 32, 33, 50}) {
    for (const Term term : kTerms) {
      if (term == Term::kRotation && head_size % 2 == 1) continue;
      SCOPED_TRACE(absl::StrCat(Name(term), ", ", head_size, " features"));
      const Problem problem({.sequences = 9, .queries = 13, .keys = 13, .head_size = head_size},
                            term);
      ExpectClose(problem, Compute<float>(problem), ComputeReference(problem));
    }
  }
}

TEST(AttentionSimtSizesTest, BiasesMayLieApart) {
  for (const Term term : {Term::kAllWithRelative, Term::kAllWithToeplitz}) {
    const Problem problem(
        {.members = 3, .sequences = 5, .heads = 2, .queries = 13, .keys = 13, .head_size = 8},
        term);
    const Results<float> expected = Compute<float>(problem);
    Results<float> distant = Compute<float>(WithDistantBiases(problem));
    // Gradients are without gaps, in arrays as large as the biases.
    for (std::vector<float>* gradient : {&distant.content_bias, &distant.position_bias}) {
      gradient->resize(expected.content_bias.size());
    }
    ExpectSameBits(distant, expected);
  }
}

TEST(AttentionSimtCausalTest, AQuerySeesNoKeyBehindItself) {
  for (const int64_t n : {1, 2, 7, 17, 80, 131}) {
    for (const Term term : kAllTerms) {
      SCOPED_TRACE(absl::StrCat(Name(term), ", ", n, " tokens"));
      const Problem problem({.members = 2,
                             .sequences = n <= 17 ? 41 : 2,
                             .heads = n <= 17 ? 2 : 1,
                             .queries = n,
                             .keys = n,
                             .head_size = 16},
                            term, /*causal=*/true);
      ExpectClose(problem, Compute<float>(problem), ComputeReference(problem));
    }
  }
}

// Products and sums are in float32, so bfloat16 only rounds stored values: by 2^-9 of each output
// and gradient, and through the rounded outputs in do . o.
TEST(AttentionSimtBFloat16Test, IsAsNearToTheFormulaAsItsRoundedOutputs) {
  for (const int64_t n : {1, 2, 7, 80, 81}) {
    for (const int64_t head_size : {8, 16, 64}) {
      for (const Term term : kTerms) {
        SCOPED_TRACE(absl::StrCat(Name(term), ", ", n, " tokens, ", head_size, " features"));
        Problem problem({.members = 2,
                         .sequences = n <= 7 ? 21 : 2,
                         .heads = 1,
                         .queries = n,
                         .keys = n,
                         .head_size = head_size},
                        term);
        problem.qkv = ToFloats(Converted<BFloat16>(problem.qkv));
        problem.output_gradient = ToFloats(Converted<BFloat16>(problem.output_gradient));
        ExpectClose(problem, Compute<BFloat16>(problem), ComputeReference(problem),
                    /*tolerance=*/1e-2);
      }
    }
  }
}

// A missing barrier, or a sum in the order in which threads come, would show.
class AttentionSimtOrderTest : public testing::TestWithParam<std::tuple<int64_t, int64_t, Term>> {};

TEST_P(AttentionSimtOrderTest, TheOrderOfThreadsAndBlocksChangesNoBit) {
  const auto [n, head_size, term] = GetParam();
  const Problem problem(
      {.members = 2, .sequences = 11, .heads = 1, .queries = n, .keys = n, .head_size = head_size},
      term, /*causal=*/n == 18);
  const Results<float> expected = Compute<float>(problem);
  ExpectSameBits(Compute<float>(problem, {.order = Emulator::Order::kBackward}), expected);
  for (const uint64_t seed : {1, 2}) {
    ExpectSameBits(Compute<float>(problem, {.order = Emulator::Order::kShuffled, .seed = seed}),
                   expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionSimtOrderTest,
                         testing::Combine(testing::Values(3, 18, 40), testing::Values(8, 64),
                                          testing::Values(Term::kNone, Term::kAllWithRelative,
                                                          Term::kAllWithToeplitz)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<2>(info.param)), "_",
                                               std::get<0>(info.param), "tokens_",
                                               std::get<1>(info.param), "features");
                         });

TEST(AttentionSimtPackTest, APackIsItsMembersBitForBit) {
  for (const Term term : {Term::kNone, Term::kAllWithRelative, Term::kAllWithToeplitz}) {
    SCOPED_TRACE(Name(term));
    const Problem pack(
        {.members = 3, .sequences = 40, .heads = 2, .queries = 11, .keys = 11, .head_size = 8},
        term);
    ExpectSameBits(Compute<float>(MemberOf(pack, 1)), MemberOf(Compute<float>(pack), pack, 1));
  }
}

// One additive term for all members; its gradient is of each.
TEST(AttentionSimtPackTest, MembersMayShareAnAdditiveTerm) {
  const AttentionShape shape = {
      .members = 3, .sequences = 5, .heads = 2, .queries = 19, .keys = 19, .head_size = 8};
  Problem problem(shape, Term::kAdditive);
  const std::vector<float> of_one(problem.additive.begin(), problem.additive.begin() + 2 * 19 * 19);
  for (size_t i = 0; i < problem.additive.size(); ++i) {
    problem.additive[i] = of_one[i % of_one.size()];
  }
  const Results<double> expected = ComputeReference(problem);
  problem.additive = of_one;
  problem.additive.shrink_to_fit();
  problem.additive_shared = true;
  Results<float> results = Compute<float>(problem);
  ExpectClose(problem, results, expected);
}

// Some queries of a sequence can be asked for by themselves, as long sequences need.
class AttentionSimtRowsTest : public testing::TestWithParam<bool> {};

TEST_P(AttentionSimtRowsTest, SomeQueriesGetWhatTheFormulaGivesThem) {
  const int64_t n = 21, first = 8, count = 9;
  const Problem all({.sequences = 5, .queries = n, .keys = n, .head_size = 8}, Term::kRelative,
                    /*causal=*/GetParam());
  const std::vector<double> expected = ComputeReference(all).output;
  const SomeQueries some(all, first, count);
  std::vector<float> output(expected.size(), -1);
  HeadVectors<float> rows = all.Features(output.data());
  rows.data += first * rows.token;
  Emulator device({});
  LaunchForward(device, some.inputs, rows, /*log_sum_exp=*/nullptr);
  EXPECT_EQ(device.problem(), "");
  for (int64_t b = 0; b < 5; ++b) {
    for (int64_t i = 0; i < n * 8; ++i) {
      const bool asked = i >= first * 8 && i < (first + count) * 8;
      const auto place = static_cast<size_t>(b * n * 8 + i);
      EXPECT_NEAR(output[place], asked ? expected[place] : -1, 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, AttentionSimtRowsTest, testing::Bool());

// A term of minus infinity masks a key, also the first that a query meets.
TEST(AttentionSimtMaskTest, MinusInfinityMasksAKey) {
  Problem problem({.sequences = 3, .queries = 9, .keys = 9, .head_size = 8}, Term::kAdditive);
  for (size_t i = 0; i < 9; ++i) {
    for (size_t j = 0; j < 9; ++j) {
      if (j < i) problem.additive[i * 9 + j] = -INFINITY;
    }
  }
  ExpectClose(problem, Compute<float>(problem), ComputeReference(problem));
}

// Whatever the shape, a block asks for no more shared memory than every device grants.
TEST(AttentionTilesTest, FitIntoSharedMemory) {
  for (const int64_t head_size : {8, 16, 32, 64}) {
    for (const int64_t n : {1, 2, 3, 7, 16, 17, 31, 80, 120, 501, 2048}) {
      for (const int64_t sequences : {1, 2, 5, 8, 128, 1000}) {
        for (const bool toeplitz : {false, true}) {
          const AttentionShape shape = {
              .sequences = sequences, .queries = n, .keys = n, .head_size = head_size};
          const float something = 0;
          const AttentionTerms terms = {
              .additive = &something, .relative = &something, .toeplitz = toeplitz};
          const BackwardPlan plan = MakeBackwardPlan(shape, terms);
          SCOPED_TRACE(absl::StrCat(n, " tokens, ", sequences, " sequences, ", head_size));
          EXPECT_LE(plan.query_tiles.shared_bytes, 48 * 1024);
          EXPECT_LE(plan.key_tiles.shared_bytes, 48 * 1024);
          EXPECT_LE(plan.pair_tiles.shared_bytes, 48 * 1024);
          EXPECT_LE(plan.diagonal_tiles.shared_bytes, 48 * 1024);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lengthwise::kernels
