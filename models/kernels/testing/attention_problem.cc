#include "models/kernels/testing/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "models/kernels/testing/attention_reference.h"

namespace lengthwise::kernels {
namespace {

bool HasAdditive(Term term) {
  return term == Term::kAdditive || term == Term::kAllWithRelative ||
         term == Term::kAllWithToeplitz;
}
bool HasRotation(Term term) {
  return term == Term::kRotation || term == Term::kAllWithRelative ||
         term == Term::kAllWithToeplitz;
}
bool HasRelative(Term term) { return term == Term::kRelative || term == Term::kAllWithRelative; }
bool IsToeplitz(Term term) { return term == Term::kToeplitz || term == Term::kAllWithToeplitz; }

std::vector<float> Numbers(int64_t count, std::mt19937& random) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) {
    number = static_cast<float>(static_cast<int64_t>(random()) - (int64_t{1} << 31)) * 0x1p-30F;
  }
  return numbers;
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

// `largest` is a lower bound of the largest magnitude, where the exact values are 0.
void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected,
                 double largest, double tolerance, const char* name) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double error = std::abs(actual[i] - expected[i]);
    // Also true if the error is NaN.
    if (!(error <= worst)) worst = error;
  }
  EXPECT_LE(worst, tolerance * largest) << name;
}

}  // namespace

std::string Name(Term term) {
  const char* const names[] = {"None",     "Additive",        "Relative",       "Toeplitz",
                               "Rotation", "AllWithRelative", "AllWithToeplitz"};
  return names[static_cast<int>(term)];
}

Problem::Problem(const AttentionShape& shape, Term term, bool causal)
    : shape(shape), term(term), causal(causal) {
  std::mt19937 random(17);
  const int64_t heads = shape.members * shape.heads;
  const int64_t tokens = shape.members * shape.sequences * shape.queries;
  qkv = Numbers(3 * tokens * shape.heads * shape.head_size, random);
  output_gradient = Numbers(tokens * shape.heads * shape.head_size, random);
  if (HasAdditive(term)) additive = Numbers(heads * shape.queries * shape.keys, random);
  if (HasRotation(term)) {
    rotation.resize(static_cast<size_t>(shape.members * shape.keys * shape.head_size));
    for (size_t i = 0; i < rotation.size(); ++i) {
      const size_t half = static_cast<size_t>(shape.head_size) / 2,
                   angle = i - (i / half % 2) * half;
      const double radians = 0.1 * static_cast<double>(angle);
      rotation[i] = static_cast<float>(angle == i ? std::sin(radians) : std::cos(radians));
    }
  }
  if (!HasRelative(term) && !IsToeplitz(term)) return;
  relative_size = shape.head_size *
                  (HasRelative(term) ? shape.queries * shape.keys : shape.queries + shape.keys - 1);
  relative = Numbers(heads * relative_size, random);
  content_bias = Numbers(heads * shape.head_size, random);
  position_bias = Numbers(heads * shape.head_size, random);
}

AttentionInputs Problem::Inputs() const {
  return {.shape = shape,
          .queries = Part(qkv.data(), 0),
          .keys = Part(qkv.data(), 1),
          .values = Part(qkv.data(), 2),
          .terms = Terms()};
}

AttentionTerms Problem::Terms() const {
  const auto given = [](const std::vector<float>& numbers) {
    return numbers.empty() ? nullptr : numbers.data();
  };
  return {.additive = given(additive),
          .additive_shared = additive_shared,
          .relative = given(relative),
          .toeplitz = IsToeplitz(term),
          .content_bias = given(content_bias),
          .position_bias = given(position_bias),
          .bias_stride = bias_stride,
          .rotation = given(rotation),
          .causal = causal};
}

namespace {

// One of `members` equal parts.
std::vector<float> PartOf(const std::vector<float>& all, int64_t members, int64_t p) {
  const auto size = static_cast<int64_t>(all.size()) / members;
  return std::vector<float>(all.begin() + p * size, all.begin() + (p + 1) * size);
}

}  // namespace

Problem MemberOf(const Problem& pack, int64_t p) {
  const int64_t members = pack.shape.members;
  Problem member = pack;
  member.shape.members = 1;
  for (std::vector<float>* numbers :
       {&member.qkv, &member.output_gradient, &member.additive, &member.relative,
        &member.content_bias, &member.position_bias, &member.rotation}) {
    *numbers = PartOf(*numbers, members, p);
  }
  return member;
}

Results<float> MemberOf(const Results<float>& together, const Problem& pack, int64_t p) {
  Results<float> member = together;
  for (std::vector<float>* numbers :
       {&member.output, &member.qkv, &member.additive, &member.relative, &member.content_bias,
        &member.position_bias}) {
    *numbers = PartOf(*numbers, pack.shape.members, p);
  }
  return member;
}

SomeQueries::SomeQueries(const Problem& all, int64_t first, int64_t count) : inputs(all.Inputs()) {
  const int64_t n = all.shape.keys;
  for (int64_t c = 0; c < all.shape.head_size; ++c) {
    const float* rows = &all.relative[static_cast<size_t>((c * n + first) * n)];
    relative.insert(relative.end(), rows, rows + count * n);
  }
  inputs.shape.queries = count;
  inputs.queries.data += first * inputs.queries.token;
  inputs.terms.first_query = first;
  inputs.terms.relative = relative.data();
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
        .toeplitz = IsToeplitz(problem.term),
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

void ExpectClose(const Problem& problem, const Results<float>& actual,
                 const Results<double>& expected, double tolerance, double cancelling) {
  // A single key has probability 1 whatever the logit: its gradient is the difference of two equal
  // sums of up to 64 products.
  const double largest = std::max(problem.shape.keys == 1 ? 10.0 : 0.0, cancelling);
  ExpectClose(actual.output, expected.output, 0, tolerance, "output");
  ExpectClose(actual.additive, expected.additive, largest, tolerance,
              "gradient of the additive term");
  ExpectClose(actual.relative, expected.relative, largest, tolerance,
              "gradient of the relative term");
  ExpectClose(actual.content_bias, expected.content_bias, largest, tolerance,
              "gradient of content_bias");
  ExpectClose(actual.position_bias, expected.position_bias, largest, tolerance,
              "gradient of position_bias");
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
    ExpectClose(gradients, references, largest, tolerance, names[which]);
  }
}

Problem WithDistantBiases(const Problem& problem) {
  Problem distant = problem;
  const int64_t size = problem.shape.heads * problem.shape.head_size;
  distant.bias_stride = size + 5;
  for (std::vector<float>* biases : {&distant.content_bias, &distant.position_bias}) {
    if (biases->empty()) continue;
    std::vector<float> moved;
    for (int64_t p = 0; p < problem.shape.members; ++p) {
      moved.insert(moved.end(), biases->begin() + p * size, biases->begin() + (p + 1) * size);
      moved.insert(moved.end(), 5, NAN);
    }
    *biases = std::move(moved);
  }
  return distant;
}

void ExpectSameBits(const Results<float>& a, const Results<float>& b) {
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.qkv, b.qkv);
  EXPECT_EQ(a.additive, b.additive);
  EXPECT_EQ(a.relative, b.relative);
  EXPECT_EQ(a.content_bias, b.content_bias);
  EXPECT_EQ(a.position_bias, b.position_bias);
}

}  // namespace lengthwise::kernels
