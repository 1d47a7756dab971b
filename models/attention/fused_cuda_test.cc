// Runs the attention kernels on a GPU with the cases that
// models/kernels/tensor_attention_simt_test.cc runs in the emulator. Skipped without a GPU.
#include <cstdint>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/tensor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/tensor_attention_cuda.h"
#include "models/kernels/testing/tensor_problem.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/testing/cuda_for_tests.h"

namespace lengthwise::models {
namespace {

using kernels::BFloat16;

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

kernels::TensorResults ComputeOnTensorCores(const kernels::TensorProblem& problem) {
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
  OnStream(kGpu, [&](auto* stream) {
    return kernels::TensorAttentionForwardCuda(inputs, Data<BFloat16>(output),
                                               Data<float>(log_sum_exp), stream);
  });
  OnStream(kGpu, [&](auto* stream) {
    at::Tensor workspace =
        EmptyOnGpu<float>(kernels::TensorAttentionWorkspace(inputs, of_additive.numel() > 0));
    return kernels::TensorAttentionBackwardCuda(inputs, Data<BFloat16>(output),
                                                Data<BFloat16>(gradient), Data<float>(log_sum_exp),
                                                {.qkv = Data<BFloat16>(qkv_gradient),
                                                 .additive = Data<float>(of_additive),
                                                 .projection = Data<float>(of_projection),
                                                 .content_bias = Data<float>(of_content),
                                                 .position_bias = Data<float>(of_position)},
                                                Data<float>(workspace), stream);
  });
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
      const kernels::TensorResults results = ComputeOnTensorCores(problem);
      ExpectClose(problem, results, /*tolerance=*/1e-2);
      ExpectSameBits(ComputeOnTensorCores(problem), results);
    }
  }
}

}  // namespace
}  // namespace lengthwise::models
