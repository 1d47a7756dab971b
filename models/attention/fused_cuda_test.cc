// Runs the attention kernels on a GPU with the cases that models/kernels/attention_simt_test.cc
// runs in the emulator, and compares the operator with the CPU's. Skipped without a GPU.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/sin.h"
#include "ATen/ops/tensor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/attention/attention.h"
#include "models/kernels/attention_cuda.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/tensor_attention_cuda.h"
#include "models/kernels/testing/attention_problem.h"
#include "models/kernels/testing/tensor_problem.h"
#include "models/layers/testing/cuda_for_tests.h"

namespace lengthwise::models {
namespace {

using kernels::BFloat16;
using kernels::Problem;
using kernels::Results;
using kernels::Term;

const at::Device kGpu(at::kCUDA, 0);

template <typename T>
constexpr at::ScalarType kType = at::kFloat;
template <>
constexpr at::ScalarType kType<BFloat16> = at::kBFloat16;

template <typename T>
at::Tensor OnGpu(const std::vector<float>& numbers) {
  return at::tensor(at::ArrayRef<float>(numbers)).to(at::kFloat).to(kType<T>).to(kGpu);
}

template <typename T>
at::Tensor EmptyOnGpu(int64_t count) {
  return at::empty({count}, at::TensorOptions(kGpu).dtype(kType<T>));
}

template <typename T>
T* Data(at::Tensor& tensor) {
  return tensor.numel() == 0 ? nullptr : static_cast<T*>(tensor.mutable_data_ptr());
}

std::vector<float> ToFloats(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kFloat).cpu();
  const float* data = numbers.const_data_ptr<float>();
  return std::vector<float>(data, data + numbers.numel());
}

// Runs on the default stream, which is also LibTorch's.
template <typename T>
Results<float> Compute(const Problem& problem) {
  at::Tensor qkv = OnGpu<T>(problem.qkv), output_gradient = OnGpu<T>(problem.output_gradient);
  at::Tensor additive = OnGpu<float>(problem.additive), relative = OnGpu<float>(problem.relative);
  at::Tensor content_bias = OnGpu<float>(problem.content_bias),
             position_bias = OnGpu<float>(problem.position_bias),
             rotation = OnGpu<float>(problem.rotation);
  kernels::AttentionTerms terms = problem.Terms();
  terms.additive = Data<float>(additive);
  terms.relative = Data<float>(relative);
  terms.content_bias = Data<float>(content_bias);
  terms.position_bias = Data<float>(position_bias);
  terms.rotation = Data<float>(rotation);
  const kernels::AttentionShape& shape = problem.shape;
  const T* numbers = Data<T>(qkv);
  const kernels::AttentionInputsOf<T> inputs = {.shape = shape,
                                                .queries = problem.Part(numbers, 0),
                                                .keys = problem.Part(numbers, 1),
                                                .values = problem.Part(numbers, 2),
                                                .terms = terms};
  at::Tensor output = EmptyOnGpu<T>(output_gradient.numel()), qkv_gradient = at::empty_like(qkv);
  at::Tensor additive_gradient = at::empty_like(additive),
             relative_gradient = at::empty_like(relative),
             content_gradient = at::empty_like(content_bias),
             position_gradient = at::empty_like(position_bias);
  at::Tensor log_sum_exp =
      EmptyOnGpu<float>(shape.members * shape.sequences * shape.heads * shape.queries);
  at::Tensor workspace = EmptyOnGpu<float>(kernels::AttentionWorkspaceCuda(shape, terms));
  EXPECT_STREQ(kernels::AttentionForwardCuda(inputs, problem.Features(Data<T>(output)),
                                             Data<float>(log_sum_exp), /*stream=*/nullptr),
               nullptr);
  const kernels::AttentionGradientsOf<T> gradients = {
      .queries = problem.Part(Data<T>(qkv_gradient), 0),
      .keys = problem.Part(Data<T>(qkv_gradient), 1),
      .values = problem.Part(Data<T>(qkv_gradient), 2),
      .additive = Data<float>(additive_gradient),
      .relative = Data<float>(relative_gradient),
      .content_bias = Data<float>(content_gradient),
      .position_bias = Data<float>(position_gradient)};
  EXPECT_STREQ(
      kernels::AttentionBackwardCuda(inputs, problem.Features<const T>(Data<T>(output)),
                                     problem.Features<const T>(Data<T>(output_gradient)),
                                     Data<float>(log_sum_exp), gradients, Data<float>(workspace),
                                     /*stream=*/nullptr),
      nullptr);
  Results<float> results(problem);
  results.output = ToFloats(output);
  results.qkv = ToFloats(qkv_gradient);
  results.additive = ToFloats(additive_gradient);
  results.relative = ToFloats(relative_gradient);
  results.content_bias = ToFloats(content_gradient);
  results.position_bias = ToFloats(position_gradient);
  return results;
}

void ExpectTheFormula(Problem problem) {
  const Results<float> results = Compute<float>(problem);
  ExpectClose(problem, results, ComputeReference(problem));
  ExpectSameBits(Compute<float>(problem), results);

  problem.qkv = ToFloats(OnGpu<BFloat16>(problem.qkv));
  problem.output_gradient = ToFloats(OnGpu<BFloat16>(problem.output_gradient));
  // A logit's gradient is P (dP - dO O), with O as it was rounded to bfloat16. That rounding stays
  // where one key has nearly all probability and the difference nearly vanishes; it grows with the
  // root of the number of products and sequences that are summed.
  const double cancelling =
      0.5 * std::sqrt(static_cast<double>(problem.shape.sequences * problem.shape.head_size));
  ExpectClose(problem, Compute<BFloat16>(problem), ComputeReference(problem), /*tolerance=*/1e-2,
              cancelling);
}

TEST(AttentionCudaTest, MatchesTheFormulaAndRepeatsItsBits) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (const int64_t n : {1, 2, 7, 80, 81, 120, 501}) {
    for (const int64_t members : {1, 3}) {
      for (const int64_t head_size : {8, 16, 64}) {
        const kernels::AttentionShape shape = {.members = members,
                                               .sequences = n <= 7     ? 75
                                                            : n <= 120 ? 3
                                                                       : 1,
                                               .heads = n <= 120 && members == 1 ? 2 : 1,
                                               .queries = n,
                                               .keys = n,
                                               .head_size = head_size};
        for (const Term term : kernels::kAllTerms) {
          for (const bool causal : {false, true}) {
            SCOPED_TRACE(absl::StrCat(Name(term), causal ? ", causal, " : ", ", n, " tokens, ",
                                      members, " members, ", head_size, " features"));
            ExpectTheFormula(Problem(shape, term, causal));
          }
        }
      }
    }
  }
}

// Pseudo-random numbers in [-2, 2].
at::Tensor DeviceNumbers(at::IntArrayRef shape, const at::Device& device) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble)
      .mul(12.9898)
      .sin()
      .mul(2)
      .to(at::kFloat)
      .view(shape)
      .to(device);
}

// On the default stream.
kernels::TensorResults ComputeOnTensorCores(const kernels::TensorProblem& problem,
                                            kernels::TensorVariant variant) {
  at::Tensor qkv = OnGpu<BFloat16>(problem.problem.qkv),
             gradient = OnGpu<BFloat16>(problem.problem.output_gradient),
             sinusoids = OnGpu<BFloat16>(problem.sinusoids),
             projection = OnGpu<BFloat16>(problem.projection);
  at::Tensor additive = OnGpu<float>(problem.problem.additive),
             rotation = OnGpu<float>(problem.problem.rotation),
             content_bias = OnGpu<float>(problem.problem.content_bias),
             position_bias = OnGpu<float>(problem.problem.position_bias);
  kernels::TensorAttentionInputs inputs = problem.Inputs();
  inputs.qkv = Data<BFloat16>(qkv);
  inputs.additive = Data<float>(additive);
  inputs.rotation = Data<float>(rotation);
  inputs.sinusoids = Data<BFloat16>(sinusoids);
  inputs.projection = Data<BFloat16>(projection);
  inputs.content_bias = Data<float>(content_bias);
  inputs.position_bias = Data<float>(position_bias);
  at::Tensor output = at::empty_like(gradient), qkv_gradient = at::empty_like(qkv);
  at::Tensor of_additive = at::empty_like(additive),
             of_projection = EmptyOnGpu<float>(projection.numel()),
             of_content = at::empty_like(content_bias), of_position = at::empty_like(position_bias);
  at::Tensor log_sum_exp = EmptyOnGpu<float>(gradient.numel() / kernels::kTensorHeadSize);
  at::Tensor workspace = EmptyOnGpu<float>(
      kernels::TensorAttentionWorkspace(inputs, variant, of_additive.numel() > 0));
  EXPECT_STREQ(kernels::TensorAttentionForwardCuda(inputs, variant, Data<BFloat16>(output),
                                                   Data<float>(log_sum_exp), /*stream=*/nullptr),
               nullptr);
  EXPECT_STREQ(
      kernels::TensorAttentionBackwardCuda(inputs, variant, Data<BFloat16>(output),
                                           Data<BFloat16>(gradient), Data<float>(log_sum_exp),
                                           {.qkv = Data<BFloat16>(qkv_gradient),
                                            .additive = Data<float>(of_additive),
                                            .projection = Data<float>(of_projection),
                                            .content_bias = Data<float>(of_content),
                                            .position_bias = Data<float>(of_position)},
                                           Data<float>(workspace), /*stream=*/nullptr),
      nullptr);
  kernels::TensorResults results(problem);
  results.attention.output = ToFloats(output);
  results.attention.qkv = ToFloats(qkv_gradient);
  results.attention.additive = ToFloats(of_additive);
  results.attention.content_bias = ToFloats(of_content);
  results.attention.position_bias = ToFloats(of_position);
  results.projection = ToFloats(of_projection);
  return results;
}

TEST(TensorAttentionCudaTest, EveryLengthMatchesTheFormulaAndRepeatsItsBits) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (const kernels::TensorTerm term : kernels::kTensorTerms) {
    for (const int64_t tokens : {1, 2, 7, 16, 17, 40, 63, 64, 80, 97, 128}) {
      SCOPED_TRACE(absl::StrCat(Name(term), ", ", tokens, " tokens"));
      const kernels::TensorProblem problem({.members = 3, .sequences = 5, .tokens = tokens}, term);
      const kernels::TensorResults results = ComputeOnTensorCores(problem, {});
      ExpectClose(problem, results, /*tolerance=*/1e-2);
      ExpectSameBits(ComputeOnTensorCores(problem, {}), results);
    }
  }
}

TEST(TensorAttentionCudaTest, EveryVariantMatchesTheFormula) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (const kernels::TensorTerm term :
       {kernels::TensorTerm::kAdditive, kernels::TensorTerm::kRandomized}) {
    for (const int64_t tokens : {40, 80}) {
      const kernels::TensorProblem problem({.members = 2, .sequences = 5, .tokens = tokens}, term);
      for (const kernels::TensorVariant& variant : kernels::kTensorVariants) {
        SCOPED_TRACE(absl::StrCat(Name(term), ", ", tokens, " tokens, ", variant.blocks,
                                  " blocks, ", variant.sequences, " sequences, registers ",
                                  variant.in_registers));
        ExpectClose(problem, ComputeOnTensorCores(problem, variant), /*tolerance=*/1e-2);
      }
    }
  }
}

TEST(FusedCudaTest, GpuOperatorMatchesTheCpu) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  const auto differentiate = [](const at::Device& device) {
    std::vector<at::Tensor> leaves = {
        DeviceNumbers({2, 9, 13, 3 * 32}, device),   // queries, keys, values
        DeviceNumbers({2, 4, 8, 13, 13}, device),    // R
        DeviceNumbers({2, 4, 8}, device).mul(0.5),   // u
        DeviceNumbers({2, 4, 8}, device).mul(-0.5),  // w
        DeviceNumbers({1, 4, 13, 13}, device),       // A, shared by members
    };
    for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
    EXPECT_TRUE(CanFuse(leaves[0], 8));
    const at::Tensor output = FusedAttention(leaves[0], 4,
                                             {.additive = leaves[4],
                                              .relative = leaves[1],
                                              .content_bias = leaves[2],
                                              .position_bias = leaves[3],
                                              .causal = true});
    output.mul(DeviceNumbers(output.sizes(), device)).sum().backward();
    std::vector<at::Tensor> results = {output.detach().cpu()};
    for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad().cpu());
    return results;
  };
  const std::vector<at::Tensor> cpu = differentiate(at::kCPU), gpu = differentiate(kGpu);
  for (size_t i = 0; i < cpu.size(); ++i) {
    const double error = cpu[i].sub(gpu[i]).abs().max().item<double>();
    EXPECT_LE(error, 2e-5 * cpu[i].abs().max().item<double>()) << i;
  }
}

}  // namespace
}  // namespace lengthwise::models
