// The kernels of tensor_attention_cuda.h, as they are, in simt_emulator.h: against the formula in
// double precision, with every number of tokens of the published training, and in any order of
// threads. models/attention/fused_cuda_test.cc runs them on a GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/tensor_attention_launches.h"
#include "models/kernels/testing/attention_problem.h"
#include "models/kernels/testing/simt_emulator.h"
#include "models/kernels/testing/simt_memory.h"
#include "models/kernels/testing/tensor_problem.h"

namespace lengthwise::kernels {
namespace {

using simt::Emulator;

// Allows for operands rounded to 8 significant bits.
constexpr double kTolerance = 1e-2;

float* Wanted(std::vector<float>& numbers) { return numbers.empty() ? nullptr : numbers.data(); }

TensorResults Compute(const TensorProblem& problem, const Emulator::Options& options = {}) {
  const std::vector<BFloat16> qkv = Converted<BFloat16>(problem.problem.qkv),
                              gradient = Converted<BFloat16>(problem.problem.output_gradient),
                              sinusoids = Converted<BFloat16>(problem.sinusoids),
                              projection = Converted<BFloat16>(problem.projection);
  TensorAttentionInputs inputs = problem.Inputs();
  inputs.qkv = qkv.data();
  if (!sinusoids.empty()) {
    inputs.sinusoids = sinusoids.data();
    inputs.projection = projection.data();
  }
  TensorResults results(problem);
  const bool additive = !results.attention.additive.empty();
  std::vector<BFloat16> output = Unwritten<BFloat16>(static_cast<int64_t>(gradient.size())),
                        qkv_gradient = Unwritten<BFloat16>(static_cast<int64_t>(qkv.size()));
  std::vector<float> log_sum_exp =
      Unwritten(inputs.shape.members * inputs.shape.sequences * kTensorHeads * inputs.shape.tokens);
  const int64_t size = MakeTensorPlan(inputs, additive).size;
  std::vector<float> workspace = Unwritten(size);
  for (std::vector<float>* numbers : {&results.attention.additive, &results.attention.content_bias,
                                      &results.attention.position_bias, &results.projection}) {
    *numbers = Unwritten(static_cast<int64_t>(numbers->size()));
  }
  Emulator device(options);
  LaunchTensorForward(device, inputs, output.data(), log_sum_exp.data());
  LaunchTensorBackward(device, inputs, output.data(), gradient.data(), log_sum_exp.data(),
                       {.qkv = qkv_gradient.data(),
                        .additive = Wanted(results.attention.additive),
                        .projection = Wanted(results.projection),
                        .content_bias = Wanted(results.attention.content_bias),
                        .position_bias = Wanted(results.attention.position_bias)},
                       workspace.data());
  EXPECT_EQ(device.problem(), "");
  results.attention.output = ToFloats(output);
  results.attention.qkv = ToFloats(qkv_gradient);
  return results;
}

class TensorAttentionTest : public testing::TestWithParam<TensorTerm> {};

// One to three sequences, of which a block takes two, of one member or two; of one where there are
// many tokens, which take most of the time.
TEST_P(TensorAttentionTest, EveryLengthAgreesWithTheFormula) {
  for (int64_t tokens = 2; tokens <= 80; ++tokens) {
    SCOPED_TRACE(absl::StrCat(tokens, " tokens"));
    const int64_t members = tokens <= 40 ? 1 + tokens % 2 : 1;
    const TensorProblem problem({.members = members, .sequences = 1 + tokens % 3, .tokens = tokens},
                                GetParam());
    ExpectClose(problem, Compute(problem), kTolerance);
  }
}

TEST_P(TensorAttentionTest, LongSequencesAgreeWithTheFormula) {
  for (const int64_t tokens : {1, 81, 97, 113, 128}) {
    SCOPED_TRACE(absl::StrCat(tokens, " tokens"));
    const TensorProblem problem({.sequences = 1, .tokens = tokens}, GetParam());
    ExpectClose(problem, Compute(problem), kTolerance);
  }
}

// A missing barrier, or a sum in the order in which threads come, would show.
TEST_P(TensorAttentionTest, TheOrderOfThreadsAndBlocksChangesNoBit) {
  const std::vector<Emulator::Options> orders = {{.order = Emulator::Order::kShuffled, .seed = 1},
                                                 {.order = Emulator::Order::kBackward},
                                                 {.order = Emulator::Order::kShuffled, .seed = 2}};
  for (const int64_t tokens : {7, 40, 80}) {
    const bool is_long = tokens == 80;  // and takes as long as all others together
    const TensorProblem problem({.members = is_long ? 1 : 2, .sequences = 3, .tokens = tokens},
                                GetParam());
    const TensorResults expected = Compute(problem);
    for (const Emulator::Options& order : orders) {
      ExpectSameBits(Compute(problem, order), expected);
      if (is_long) break;
    }
  }
}

TEST_P(TensorAttentionTest, APackIsItsMembersBitForBit) {
  const TensorProblem pack({.members = 3, .sequences = 11, .tokens = 19}, GetParam());
  const TensorResults together = Compute(pack);
  for (int64_t p = 0; p < 3; ++p) {
    ExpectSameBits(Compute(pack.Member(p)), together.Member(pack, p));
  }
}

INSTANTIATE_TEST_SUITE_P(Terms, TensorAttentionTest, testing::ValuesIn(kTensorTerms),
                         [](const auto& info) { return Name(info.param); });

TEST(TensorAttentionTermsTest, MembersMayShareAnAdditiveTerm) {
  TensorProblem problem({.members = 3, .sequences = 5, .tokens = 19}, TensorTerm::kAdditive);
  problem.ShareAdditive();
  ExpectClose(problem, Compute(problem), kTolerance);
}

TEST(TensorAttentionTermsTest, BiasesMayLieApart) {
  const TensorProblem problem({.members = 3, .sequences = 5, .tokens = 13},
                              TensorTerm::kRandomized);
  TensorProblem distant = problem;
  distant.problem = WithDistantBiases(problem.problem);
  TensorResults results = Compute(distant);
  const TensorResults expected = Compute(problem);
  for (std::vector<float>* gradient :
       {&results.attention.content_bias, &results.attention.position_bias}) {
    gradient->resize(expected.attention.content_bias.size());
  }
  ExpectSameBits(results, expected);
}

// A term of minus infinity masks a key, also the first that a query meets.
TEST(TensorAttentionTermsTest, MinusInfinityMasksAKey) {
  TensorProblem problem({.sequences = 3, .tokens = 21}, TensorTerm::kAdditive);
  for (size_t at = 0; at < problem.problem.additive.size(); ++at) {
    const size_t i = at / 21 % 21, j = at % 21;
    if (j < i) problem.problem.additive[at] = -INFINITY;
  }
  ExpectClose(problem, Compute(problem), kTolerance);
}

// An H100 has 227 KiB for the blocks of a multiprocessor, of which each takes 1 KiB more than it
// asks for. Fewer blocks fit if sequences are longer.
TEST(TensorAttentionMemoryTest, BlocksFitTogether) {
  for (const bool relative : {false, true}) {
    for (int chunks = 1; chunks <= 5; ++chunks) {
      EXPECT_LE(TensorForwardBlocks(chunks) * (TensorForwardBytes(chunks, relative) + 1024),
                227 * 1024);
      EXPECT_LE(kBackwardBlocks * (TensorBackwardBytes(chunks, relative) + 1024), 227 * 1024)
          << chunks << " chunks";
    }
    // The most that a block of an A100 gets.
    EXPECT_LE(TensorBackwardBytes(8, relative), 163 * 1024);
  }
}

}  // namespace
}  // namespace lengthwise::kernels
