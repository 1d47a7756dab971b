// Compares the layers' kernels on a GPU with plain operators in double precision on the CPU.
// Skipped without a GPU; models/kernels/rows_simt_test.cc runs the kernels in an emulation.
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "ATen/ops/equal.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/layers.h"
#include "models/layers/testing/cuda_for_tests.h"
#include "models/layers/testing/layer_cases.h"

namespace lengthwise::models {
namespace {

const at::Device kGpu(at::kCUDA, 0);

struct Layer {
  std::string name;
  Tensors inputs;
  Function fused, plain;
  // `fused` with bfloat16 products; `fused` itself if only products would change.
  Function in_bfloat16 = fused;
};

// The added tensor is the result of a product. A residual connection and a product both use the
// norm's result; weighted, the two are the norm.
at::Tensor AddLayerNormOfAProduct(const Tensors& x) {
  const Normed normed = AddLayerNorm(x[0], x[1].to(at::kBFloat16), x[2], x[3]);
  return normed.features.mul(0.75).add(Widened(normed.operand).mul(0.25));
}

std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  for (const int64_t members : {1, 3}) {
    const std::string pack = std::to_string(members) + " members, ";
    for (const int64_t width : {1, 7, 16, 64, 256}) {
      layers.push_back({pack + "feed-forward " + std::to_string(width),
                        FeedForwardInputs(members, width), FusedFeedForward, PlainFeedForward});
    }
    for (const int64_t width : {3, 64, 101, 1024, 1025}) {
      layers.push_back({pack + "layer norm " + std::to_string(width),
                        AddLayerNormInputs(members, width), FusedAddLayerNorm, PlainAddLayerNorm,
                        AddLayerNormOfAProduct});
    }
    layers.push_back({pack + "cross-entropy", CrossEntropyInputs(members), FusedCrossEntropy,
                      PlainCrossEntropy});
  }
  return layers;
}

TEST(FusedLayersCudaTest, AgreeWithPlainOperatorsInDoubleAndRepeatTheirBits) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (const Layer& layer : Layers()) {
    const Tensors results = Differentiate(layer.inputs, at::kFloat, layer.fused, kGpu);
    ExpectClose(results, Differentiate(layer.inputs, at::kDouble, layer.plain), layer.name);
    const Tensors again = Differentiate(layer.inputs, at::kFloat, layer.fused, kGpu);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(at::equal(results[i], again[i])) << layer.name << ", tensor " << i;
    }
  }
}

TEST(FusedLayersCudaTest, ProductsInBfloat16AreAsCloseAsThatTypeIs) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (Layer layer : Layers()) {
    // What three numbers differ by may be less than bfloat16 resolves. It is the layers that are
    // tested, not their inputs.
    for (at::Tensor& input : layer.inputs) input = input.to(at::kBFloat16).to(at::kFloat);
    // Hidden features near 0 would be active by rounding alone: their biases outweigh six products.
    if (layer.inputs.size() == 5) layer.inputs[2] = layer.inputs[2].sign().mul(8);
    const auto in_bfloat16 = [&](const Tensors& inputs) {
      const Bfloat16Products products;
      return Widened(layer.in_bfloat16(inputs));
    };
    ExpectClose(Differentiate(layer.inputs, at::kFloat, in_bfloat16, kGpu),
                Differentiate(layer.inputs, at::kDouble, layer.plain), layer.name,
                /*tolerance=*/3e-2);
  }
}

TEST(FusedLayersCudaTest, FeedForwardOnTensorCoresIsAsCloseAndRepeatsItsBits) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (const int64_t members : {1, 3}) {
    Tensors inputs = {Numbers({members, 37, 11, 64}, 1), Numbers({members, 64, 256}, 2).mul(0.3),
                      Numbers({members, 256}, 3), Numbers({members, 256, 64}, 5).mul(0.3),
                      Numbers({members, 64}, 6)};
    for (at::Tensor& input : inputs) input = input.to(at::kBFloat16).to(at::kFloat);
    const Tensors expected = Differentiate(inputs, at::kDouble, PlainFeedForward);
    const std::string name = absl::StrCat(members, " members");
    const auto on_tensor_cores = [&](const Tensors& x) {
      const Bfloat16Products products;
      EXPECT_TRUE(CanUseTensorCores(Operand(x[0]), {.up = x[1]})) << name;
      return Widened(FusedFeedForward(x));
    };
    const Tensors results = Differentiate(inputs, at::kFloat, on_tensor_cores, kGpu);
    ExpectClose(results, expected, name, /*tolerance=*/3e-2);
    const Tensors again = Differentiate(inputs, at::kFloat, on_tensor_cores, kGpu);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(at::equal(results[i], again[i])) << name << ", tensor " << i;
    }
  }
}

}  // namespace
}  // namespace lengthwise::models
