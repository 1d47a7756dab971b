// Random attention problems, and the comparison of a kernel's results with the formula in double
// precision. For tests of all attention kernels (attention.h, tensor_attention_cuda.h).
#ifndef LENGTHWISE_MODELS_KERNELS_TESTING_ATTENTION_PROBLEM_H_
#define LENGTHWISE_MODELS_KERNELS_TESTING_ATTENTION_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/kernels/attention.h"

namespace lengthwise::kernels {

// The term added to the plain formula. The last two combine R with an additive term and a rotation.
enum class Term {
  kNone,
  kAdditive,
  kRelative,
  kToeplitz,
  kRotation,
  kAllWithRelative,
  kAllWithToeplitz
};

// One at a time.
constexpr Term kTerms[] = {Term::kNone, Term::kAdditive, Term::kRelative, Term::kToeplitz,
                           Term::kRotation};

constexpr Term kAllTerms[] = {Term::kNone,           Term::kAdditive, Term::kRelative,
                              Term::kToeplitz,       Term::kRotation, Term::kAllWithRelative,
                              Term::kAllWithToeplitz};

std::string Name(Term term);

// Queries, keys and values beside each other as [P, B, n, 3, H, dh], everything else contiguous.
struct Problem {
  Problem(const AttentionShape& shape, Term term, bool causal = false);

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

  // Inputs taken from qkv unchanged, and every existing term.
  AttentionInputs Inputs() const;
  AttentionTerms Terms() const;

  AttentionShape shape;
  Term term;
  bool causal;
  // True if all members share `additive`, [1, H, n, m]. Its gradient is never shared.
  bool additive_shared = false;
  // AttentionTerms::bias_stride.
  int64_t bias_stride = 0;
  int64_t relative_size = 0;
  std::vector<float> qkv, output_gradient, additive, relative, content_bias, position_bias,
      rotation;
};

// The kernels' results for a problem, or the reference's if T is double.
template <typename T>
struct Results {
  explicit Results(const Problem& problem)
      : output(problem.output_gradient.size()),
        qkv(problem.qkv.size()),
        additive(problem.additive.size() *
                 static_cast<size_t>(problem.additive_shared ? problem.shape.members : 1)),
        relative(problem.relative.size()),
        content_bias(problem.content_bias.size()),
        position_bias(problem.position_bias.size()) {}

  std::vector<T> output, qkv, additive, relative, content_bias, position_bias;
};

// Member `p` of a pack as a problem of its own, and its part of the pack's results. Its additive
// term is not shared.
Problem MemberOf(const Problem& pack, int64_t p);
Results<float> MemberOf(const Results<float>& together, const Problem& pack, int64_t p);

// The queries first .. first + count - 1 of a problem of one member and one head with
// Term::kRelative.
struct SomeQueries {
  SomeQueries(const Problem& all, int64_t first, int64_t count);
  SomeQueries(const SomeQueries&) = delete;
  SomeQueries& operator=(const SomeQueries&) = delete;

  // The rows of R that belong to them.
  std::vector<float> relative;
  AttentionInputs inputs;
};

// The values of the formula; the gradients' shapes are those of the problem's vectors.
Results<double> ComputeReference(const Problem& problem);

// Every number is within `tolerance` of the largest magnitude of its tensor, and gradients of the
// logits' terms also of `cancelling`, the magnitude of the numbers that cancel in them.
void ExpectClose(const Problem& problem, const Results<float>& actual,
                 const Results<double>& expected, double tolerance = 1e-5, double cancelling = 0);

// The same problem, with other numbers between the members' u and w.
Problem WithDistantBiases(const Problem& problem);

void ExpectSameBits(const Results<float>& a, const Results<float>& b);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TESTING_ATTENTION_PROBLEM_H_
