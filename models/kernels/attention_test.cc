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
#include "models/kernels/attention_reference.h"

namespace lengthwise::kernels {
namespace {

enum class Term { kNone, kAdditive, kRelative, kToeplitz, kRotation };

constexpr Term kTerms[] = {Term::kNone, Term::kAdditive, Term::kRelative, Term::kToeplitz,
                           Term::kRotation};

std::string Name(Term term) {
  const char* const names[] = {"None", "Additive", "Relative", "Toeplitz", "Rotation"};
  return names[static_cast<int>(term)];
}

std::vector<float> Numbers(int64_t count, std::mt19937& random) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) {
    number = static_cast<float>(static_cast<int64_t>(random()) - (int64_t{1} << 31)) * 0x1p-30F;
  }
  return numbers;
}

// Queries, keys and values beside each other as [P, B, n, 3, H, dh], everything else contiguous.
struct Problem {
  Problem(const AttentionShape& shape, Term term, bool causal = false)
      : shape(shape), term(term), causal(causal) {
    std::mt19937 random(17);
    const int64_t heads = shape.members * shape.heads;
    const int64_t tokens = shape.members * shape.sequences * shape.queries;
    qkv = Numbers(3 * tokens * shape.heads * shape.head_size, random);
    output_gradient = Numbers(tokens * shape.heads * shape.head_size, random);
    if (term == Term::kAdditive) additive = Numbers(heads * shape.queries * shape.keys, random);
    if (term == Term::kRotation) {
      rotation.resize(static_cast<size_t>(shape.members * shape.keys * shape.head_size));
      for (size_t i = 0; i < rotation.size(); ++i) {
        const size_t half = static_cast<size_t>(shape.head_size) / 2,
                     angle = i - (i / half % 2) * half;
        const double radians = 0.1 * static_cast<double>(angle);
        rotation[i] = static_cast<float>(angle == i ? std::sin(radians) : std::cos(radians));
      }
    }
    if (term != Term::kRelative && term != Term::kToeplitz) return;
    relative_size = shape.head_size * (term == Term::kRelative ? shape.queries * shape.keys
                                                               : shape.queries + shape.keys - 1);
    relative = Numbers(heads * relative_size, random);
    content_bias = Numbers(heads * shape.head_size, random);
    position_bias = Numbers(heads * shape.head_size, random);
  }

  // Which: 0 queries, 1 keys, 2 values.
  template <typename T>
  HeadVectors<T> Part(T* data, int64_t which) const {
    const int64_t d = shape.heads * shape.head_size;
    return {.data = data + which * d,
            .member = shape.sequences * shape.queries * 3 * d,
            .sequence = shape.queries * 3 * d,
            .head = shape.head_size,
            .token = 3 * d};
  }

  template <typename T>
  HeadVectors<T> Features(T* data) const {
    const int64_t d = shape.heads * shape.head_size;
    return {.data = data,
            .member = shape.sequences * shape.queries * d,
            .sequence = shape.queries * d,
            .head = shape.head_size,
            .token = d};
  }

  AttentionInputs Inputs() const {
    const auto given = [](const std::vector<float>& numbers) {
      return numbers.empty() ? nullptr : numbers.data();
    };
    return {.shape = shape,
            .queries = Part(qkv.data(), 0),
            .keys = Part(qkv.data(), 1),
            .values = Part(qkv.data(), 2),
            .terms = {.additive = given(additive),
                      .relative = given(relative),
                      .toeplitz = term == Term::kToeplitz,
                      .content_bias = given(content_bias),
                      .position_bias = given(position_bias),
                      .rotation = given(rotation),
                      .causal = causal}};
  }

  AttentionShape shape;
  Term term;
  bool causal;
  int64_t relative_size = 0;
  std::vector<float> qkv, output_gradient, additive, relative, content_bias, position_bias,
      rotation;
};

// What the kernels give for a problem, or the reference's values where the type is double.
template <typename T>
struct Results {
  explicit Results(const Problem& problem)
      : output(problem.output_gradient.size()),
        qkv(problem.qkv.size()),
        additive(problem.additive.size()),
        relative(problem.relative.size()),
        content_bias(problem.content_bias.size()),
        position_bias(problem.position_bias.size()) {}

  std::vector<T> output, qkv, additive, relative, content_bias, position_bias;
};

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

// The numbers of one head in [n, dh] order of sequences, or back.
template <typename From, typename To>
void CopyHead(const HeadVectors<From>& from, const HeadVectors<To>& to, int64_t sequences,
              int64_t tokens, int64_t head_size) {
  for (int64_t b = 0; b < sequences; ++b) {
    for (int64_t i = 0; i < tokens; ++i) {
      for (int64_t c = 0; c < head_size; ++c) {
        to.data[b * to.sequence + i * to.token + c] =
            static_cast<To>(from.data[b * from.sequence + i * from.token + c]);
      }
    }
  }
}

Results<double> ComputeReference(const Problem& problem) {
  const AttentionShape& shape = problem.shape;
  const int64_t n = shape.queries, m = shape.keys, dh = shape.head_size;
  Results<double> results(problem);
  for (int64_t item = 0; item < shape.members * shape.heads; ++item) {
    const int64_t p = item / shape.heads, h = item % shape.heads;
    const auto packed = [&](const HeadVectors<const float>& from) {
      std::vector<double> numbers(static_cast<size_t>(shape.sequences * n * dh));
      HeadVectors<const float> head = from;
      head.data = from.Item(p, 0, h);
      CopyHead(head, HeadVectors<double>{.data = numbers.data(), .sequence = n * dh, .token = dh},
               shape.sequences, n, dh);
      return numbers;
    };
    const auto part = [&](const std::vector<float>& all, int64_t size) {
      if (all.empty()) return std::vector<double>();
      return std::vector<double>(all.begin() + item * size, all.begin() + (item + 1) * size);
    };
    const ReferenceHead head = {
        .sequences = shape.sequences,
        .queries = n,
        .keys = m,
        .head_size = dh,
        .q = packed(problem.Part(problem.qkv.data(), 0)),
        .output_gradient = packed(problem.Features(problem.output_gradient.data())),
        .k = packed(problem.Part(problem.qkv.data(), 1)),
        .v = packed(problem.Part(problem.qkv.data(), 2)),
        .additive = part(problem.additive, n * m),
        .relative = part(problem.relative, problem.relative_size),
        .toeplitz = problem.term == Term::kToeplitz,
        .content_bias = part(problem.content_bias, dh),
        .position_bias = part(problem.position_bias, dh),
        .rotation = problem.rotation.empty()
                        ? std::vector<double>()
                        : std::vector<double>(problem.rotation.begin() + p * m * dh,
                                              problem.rotation.begin() + (p + 1) * m * dh),
        .causal = problem.causal};
    const ReferenceResult result = DifferentiateAttention(head);
    const auto unpack = [&](const std::vector<double>& numbers, HeadVectors<double> to) {
      to.data = to.Item(p, 0, h);
      CopyHead(HeadVectors<const double>{.data = numbers.data(), .sequence = n * dh, .token = dh},
               to, shape.sequences, n, dh);
    };
    unpack(result.output, problem.Features(results.output.data()));
    unpack(result.q, problem.Part(results.qkv.data(), 0));
    unpack(result.k, problem.Part(results.qkv.data(), 1));
    unpack(result.v, problem.Part(results.qkv.data(), 2));
    const auto place = [&](const std::vector<double>& numbers, std::vector<double>& all) {
      std::copy(numbers.begin(), numbers.end(),
                all.begin() + item * static_cast<int64_t>(numbers.size()));
    };
    place(result.additive, results.additive);
    place(result.relative, results.relative);
    place(result.content_bias, results.content_bias);
    place(result.position_bias, results.position_bias);
  }
  return results;
}

// Every number is within 1e-5 of the tensor's largest magnitude. `largest` is a lower bound of that
// where the exact values are 0.
void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected,
                 double largest, const char* name) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double error = std::abs(actual[i] - expected[i]);
    // Also for what is not a number.
    if (!(error <= worst)) worst = error;
  }
  EXPECT_LE(worst, 1e-5 * largest) << name;
}

void ExpectClose(const Problem& problem, const Results<float>& actual,
                 const Results<double>& expected) {
  // A single key has probability 1 whatever the logit: its gradient is the difference of two equal
  // sums of up to 64 products.
  const double largest = problem.shape.keys == 1 ? 10 : 0;
  ExpectClose(actual.output, expected.output, 0, "output");
  ExpectClose(actual.additive, expected.additive, largest, "gradient of the additive term");
  ExpectClose(actual.relative, expected.relative, largest, "gradient of the relative term");
  ExpectClose(actual.content_bias, expected.content_bias, largest, "gradient of content_bias");
  ExpectClose(actual.position_bias, expected.position_bias, largest, "gradient of position_bias");
  // Each of queries, keys and values by itself.
  const auto d = static_cast<size_t>(problem.shape.heads * problem.shape.head_size);
  for (size_t which = 0; which < 3; ++which) {
    std::vector<float> gradients;
    std::vector<double> references;
    for (size_t first = which * d; first < actual.qkv.size(); first += 3 * d) {
      gradients.insert(gradients.end(), &actual.qkv[first], &actual.qkv[first] + d);
      references.insert(references.end(), &expected.qkv[first], &expected.qkv[first] + d);
    }
    const char* const names[] = {"gradient of queries", "gradient of keys", "gradient of values"};
    ExpectClose(gradients, references, largest, names[which]);
  }
}

void ExpectSameBits(const Results<float>& a, const Results<float>& b) {
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.qkv, b.qkv);
  EXPECT_EQ(a.additive, b.additive);
  EXPECT_EQ(a.relative, b.relative);
  EXPECT_EQ(a.content_bias, b.content_bias);
  EXPECT_EQ(a.position_bias, b.position_bias);
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
    const AttentionShape shape = {
        .members = 3, .sequences = 40, .heads = 2, .queries = 11, .keys = 11, .head_size = 8};
    const Problem pack(shape, term);
    const Results<float> together = Compute(pack, Serially);
    AttentionShape alone = shape;
    alone.members = 1;
    Problem member(alone, term);
    const auto second = [](const std::vector<float>& all) {
      const auto size = static_cast<int64_t>(all.size() / 3);
      return std::vector<float>(all.begin() + size, all.begin() + 2 * size);
    };
    member.qkv = second(pack.qkv);
    member.output_gradient = second(pack.output_gradient);
    member.additive = second(pack.additive);
    member.relative = second(pack.relative);
    member.content_bias = second(pack.content_bias);
    member.position_bias = second(pack.position_bias);
    member.rotation = second(pack.rotation);
    const Results<float> results = Compute(member, Serially);
    EXPECT_EQ(results.output, second(together.output));
    EXPECT_EQ(results.qkv, second(together.qkv));
    EXPECT_EQ(results.additive, second(together.additive));
    EXPECT_EQ(results.relative, second(together.relative));
    EXPECT_EQ(results.content_bias, second(together.content_bias));
    EXPECT_EQ(results.position_bias, second(together.position_bias));
  }
}

// Some queries of a sequence can be asked for by themselves, as long sequences need.
class AttentionRowsTest : public testing::TestWithParam<bool> {};

TEST_P(AttentionRowsTest, SomeQueriesGetWhatAllTogetherGet) {
  const int64_t n = 21, first = 8, count = 9;
  const Problem all({.sequences = 5, .queries = n, .keys = n, .head_size = 8}, Term::kRelative,
                    /*causal=*/GetParam());
  const std::vector<float> expected = Compute(all, Serially).output;
  AttentionInputs inputs = all.Inputs();
  inputs.shape.queries = count;
  inputs.queries.data += first * inputs.queries.token;
  inputs.terms.first_query = first;
  std::vector<float> relative;
  for (int64_t c = 0; c < 8; ++c) {
    const float* rows = &all.relative[static_cast<size_t>((c * n + first) * n)];
    relative.insert(relative.end(), rows, rows + count * n);
  }
  inputs.terms.relative = relative.data();
  std::vector<float> output(expected.size(), -1);
  HeadVectors<float> rows = all.Features(output.data());
  rows.data += first * rows.token;
  AttentionForward(inputs, rows, nullptr, Serially);
  for (int64_t b = 0; b < 5; ++b) {
    for (int64_t i = 0; i < n * 8; ++i) {
      const bool asked = i >= first * 8 && i < (first + count) * 8;
      const auto place = static_cast<size_t>(b * n * 8 + i);
      EXPECT_EQ(output[place], asked ? expected[place] : -1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, AttentionRowsTest, testing::Bool());

}  // namespace
}  // namespace lengthwise::kernels
