// Random problems for attention on tensor cores, and the comparison with the formula in double
// precision (attention_problem.h).
#ifndef LENGTHWISE_MODELS_KERNELS_TESTING_TENSOR_PROBLEM_H_
#define LENGTHWISE_MODELS_KERNELS_TESTING_TENSOR_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/kernels/tensor_attention_cuda.h"
#include "models/kernels/testing/attention_problem.h"

namespace lengthwise::kernels {

// Encodings that the kernels have: none, an addition to the logits, RoPE, and relative positions,
// 0, 1, ... or drawn from 2,048.
enum class TensorTerm { kNone, kAdditive, kRotation, kPlain, kRandomized };
constexpr TensorTerm kTensorTerms[] = {TensorTerm::kNone, TensorTerm::kAdditive,
                                       TensorTerm::kRotation, TensorTerm::kPlain,
                                       TensorTerm::kRandomized};

std::string Name(TensorTerm term);

// Numbers that the kernels read as bfloat16 are rounded to it, except the sinusoids.
struct TensorProblem {
  TensorProblem(const TensorShape& shape, TensorTerm term);

  // All but what is bfloat16.
  TensorAttentionInputs Inputs() const;
  TensorProblem Member(int64_t p) const;
  // Gives all members the first one's additive term, as one.
  void ShareAdditive();

  TensorShape shape;
  // With R of the sinusoids and the projection.
  Problem problem;
  std::vector<float> sinusoids, projection;
};

struct TensorResults {
  explicit TensorResults(const TensorProblem& problem)
      : attention(problem.problem), projection(problem.projection.size()) {}
  TensorResults Member(const TensorProblem& pack, int64_t p) const;

  // Without a gradient of R.
  Results<float> attention;
  std::vector<float> projection;
};

// The root mean square of a tensor's errors is at most `tolerance` of that of its numbers, and no
// error is above four times as much of the largest number. In gradients of u, w and W_R, numbers
// count as what cancels in them, if that is more.
void ExpectClose(const TensorProblem& problem, const TensorResults& actual, double tolerance);

void ExpectSameBits(const TensorResults& a, const TensorResults& b);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TESTING_TENSOR_PROBLEM_H_
