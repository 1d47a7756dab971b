#include "models/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "models/kernels/testing/attention_problem.h"

namespace lengthwise::kernels {
namespace {

Results<float> Compute(const Problem& problem, const ParallelFor& parallel_for) {
  const AttentionInputs inputs = problem.Inputs();
  Results<float> results(problem);
  const AttentionShape& shape = problem.shape;
  std::vector<float> log_sum_exp(
      static_cast<size_t>(shape.members * shape.sequences * shape.heads * shape.queries));
  AttentionForward(inputs, problem.Features(results.output.data()), log_sum_exp.data(),
                   parallel_for);
  const auto wanted = [](std::vector<float>& numbers) {
    return numbers.empty() ? nullptr : numbers.data();
  };
  AttentionBackward(inputs, problem.Features<const float>(results.output.data()),
                    problem.Features<const float>(problem.output_gradient.data()),
                    log_sum_exp.data(),
                    {.queries = problem.Part(results.qkv.data(), 0),
                     .keys = problem.Part(results.qkv.data(), 1),
                     .values = problem.Part(results.qkv.data(), 2),
                     .additive = wanted(results.additive),
                     .relative = wanted(results.relative),
                     .content_bias = wanted(results.content_bias),
                     .position_bias = wanted(results.position_bias)},
                    parallel_for);
  return results;
}

// Two threads, the first of which has less to do.
void OnTwoThreads(int64_t count, const RangeBody& body) {
  const int64_t middle = count / 3;
  std::thread other([&] { body(middle, count); });
  if (middle > 0) body(0, middle);
  other.join();
}

using ShapeAndTerm = std::tuple<int64_t, int64_t, int64_t, Term>;

class AttentionTest : public testing::TestWithParam<ShapeAndTerm> {};

TEST_P(AttentionTest, AgreesWithTheFormulaInDoubleOnOneThreadAndOnTwo) {
  const auto [n, members, head_size, term] = GetParam();
  // Long sequences are few, and packs narrow, for the reference's sake; short ones are several
  // chunks of sequences.
  const int64_t sequences = n <= 7 ? 75 : n <= 120 ? 3 : 1;
  const int64_t heads = n <= 120 && members == 1 ? 2 : 1;
  const Problem problem({.members = members,
                         .sequences = sequences,
                         .heads = heads,
                         .queries = n,
                         .keys = n,
                         .head_size = head_size},
                        term);
  const Results<float> results = Compute(problem, Serially);
  ExpectClose(problem, results, ComputeReference(problem));
  ExpectSameBits(results, Compute(problem, OnTwoThreads));
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Combine(testing::Values(1, 2, 7, 80, 81, 120, 501),
                                          testing::Values(1, 3), testing::Values(8, 16, 64),
                                          testing::ValuesIn(kTerms)),
                         [](const testing::TestParamInfo<ShapeAndTerm>& info) {
                           return absl::StrCat(Name(std::get<3>(info.param)), "_",
                                               std::get<0>(info.param), "tokens_",
                                               std::get<1>(info.param), "members_",
                                               std::get<2>(info.param), "features");
                         });

TEST(CausalAttentionTest, AgreesWithTheFormulaOnOneThreadAndOnTwo) {
  for (const int64_t n : {1, 2, 7, 17, 80, 131}) {
    for (const Term term : kTerms) {
      SCOPED_TRACE(absl::StrCat(Name(term), ", ", n, " tokens"));
      const Problem problem({.members = 2,
                             .sequences = n <= 17 ? 41 : 3,
                             .heads = 2,
                             .queries = n,
                             .keys = n,
                             .head_size = 16},
                            term, /*causal=*/true);
      const Results<float> results = Compute(problem, Serially);
      ExpectClose(problem, results, ComputeReference(problem));
      ExpectSameBits(results, Compute(problem, OnTwoThreads));
    }
  }
}

TEST(AttentionSizesTest, HeadsMayHaveAnyNumberOfFeatures) {
  for (const int64_t head_size : {1, 2, 5, 12, 21}) {
    for (const Term term : kTerms) {
      if (term == Term::kRotation && head_size % 2 == 1) continue;
      SCOPED_TRACE(absl::StrCat(Name(term), ", ", head_size, " features"));
      const Problem problem({.sequences = 9, .queries = 13, .keys = 13, .head_size = head_size},
                            term);
      ExpectClose(problem, Compute(problem, Serially), ComputeReference(problem));
    }
  }
}

TEST(AttentionInstructionsTest, EveryInstructionSetAgreesWithTheFormula) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const Term term : kTerms) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(absl::StrCat(Name(term), causal ? ", causal" : ""));
        const Problem problem({.sequences = 35, .queries = 29, .keys = 29, .head_size = 8}, term,
                              causal);
        ExpectClose(problem, Compute(problem, Serially), ComputeReference(problem));
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// A member of a pack gets the bits that it gets alone.
TEST(AttentionPackTest, APackIsItsMembers) {
  for (const Term term : kTerms) {
    SCOPED_TRACE(Name(term));
    const Problem pack(
        {.members = 3, .sequences = 40, .heads = 2, .queries = 11, .keys = 11, .head_size = 8},
        term);
    ExpectSameBits(Compute(MemberOf(pack, 1), Serially),
                   MemberOf(Compute(pack, Serially), pack, 1));
  }
}

// A member whose training diverged leaves the others what they are.
TEST(AttentionPackTest, NoMemberSeesAnotherThatIsNotANumber) {
  for (const Term term : kAllTerms) {
    SCOPED_TRACE(Name(term));
    // Neither queries nor sequences fill what is worked on together.
    Problem pack(
        {.members = 2, .sequences = 11, .heads = 1, .queries = 13, .keys = 13, .head_size = 8},
        term);
    const Results<float> alone = Compute(MemberOf(pack, 1), Serially);
    for (std::vector<float>* numbers : {&pack.qkv, &pack.output_gradient, &pack.relative,
                                        &pack.content_bias, &pack.position_bias}) {
      std::fill_n(numbers->begin(), numbers->size() / 2, std::nanf(""));
    }
    ExpectSameBits(MemberOf(Compute(pack, Serially), pack, 1), alone);
  }
}

// So that a training that diverges is seen.
TEST(AttentionNumbersTest, NanReachesEveryQueryThatSeesIt) {
  const int64_t n = 19, d = 8, key = 5;
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal ? "causal" : "all see all");
    Problem problem({.queries = n, .keys = n, .head_size = d}, Term::kNone, causal);
    problem.Part(problem.qkv.data(), 1).data[key * 3 * d] = std::nanf("");
    const std::vector<float> output = Compute(problem, Serially).output;
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(std::isnan(output[static_cast<size_t>(i * d)]), !causal || i >= key) << i;
    }
  }
}

// Some queries of a sequence can be asked for by themselves, as long sequences need.
class AttentionRowsTest : public testing::TestWithParam<bool> {};

TEST_P(AttentionRowsTest, SomeQueriesGetWhatAllTogetherGet) {
  const int64_t n = 21, first = 8, count = 9;
  const Problem all({.sequences = 5, .queries = n, .keys = n, .head_size = 8}, Term::kRelative,
                    /*causal=*/GetParam());
  const std::vector<float> expected = Compute(all, Serially).output;
  const SomeQueries some(all, first, count);
  std::vector<float> output(expected.size(), -1);
  HeadVectors<float> rows = all.Features(output.data());
  rows.data += first * rows.token;
  AttentionForward(some.inputs, rows, nullptr, Serially);
  for (int64_t b = 0; b < 5; ++b) {
    for (int64_t i = 0; i < n * 8; ++i) {
      const bool asked = i >= first * 8 && i < (first + count) * 8;
      const auto place = static_cast<size_t>(b * n * 8 + i);
      EXPECT_EQ(output[place], asked ? expected[place] : -1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, AttentionRowsTest, testing::Bool());

TEST(AttentionBiasTest, BiasesMayLieApart) {
  for (const Term term : {Term::kAllWithRelative, Term::kAllWithToeplitz}) {
    const Problem problem(
        {.members = 3, .sequences = 5, .heads = 2, .queries = 13, .keys = 13, .head_size = 8},
        term);
    const Results<float> expected = Compute(problem, Serially);
    Results<float> distant = Compute(WithDistantBiases(problem), Serially);
    // Gradients are without gaps, in arrays as large as the biases.
    for (std::vector<float>* gradient : {&distant.content_bias, &distant.position_bias}) {
      gradient->resize(expected.content_bias.size());
    }
    ExpectSameBits(distant, expected);
  }
}

}  // namespace
}  // namespace lengthwise::kernels
