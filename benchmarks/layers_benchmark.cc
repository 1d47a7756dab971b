// Forward and backward pass of the layers that have kernels of their own, and of the same layers as
// plain operators, on one thread or on a GPU. Sizes are those of the training step of 40 letters
// (128 sequences of 80 tokens, d_model 64, feed-forward width 256) and, for the layers of causal
// decoders, of 2,048 tokens with d_model 512.
//
//   bazel run -c opt //benchmarks:layers -- [--device=cuda]
#include <cstdint>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/layer_norm.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/ones.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/randint.h"
#include "ATen/ops/randn.h"
#include "ATen/ops/relu.h"
#include "ATen/ops/rsqrt.h"
#include "benchmark/benchmark.h"
#include "benchmarks/benchmark_device.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layers.h"
#include "models/layers/norms.h"

namespace lengthwise::models {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Size {
  int64_t sequences, tokens, features, width;
};
constexpr Size kEncoder = {.sequences = 128, .tokens = 80, .features = 64, .width = 256};
constexpr Size kDecoder = {.sequences = 1, .tokens = 2048, .features = 512, .width = 2048};

at::Device device = at::kCPU;

at::Tensor Leaf(at::IntArrayRef shape) {
  return at::randn(shape, at::TensorOptions(device)).mul(0.1).requires_grad_(true);
}

at::Tensor Features(const Size& size) {
  return Leaf({1, size.sequences, size.tokens, size.features});
}

// x W + b for one model, as LibTorch computes it.
at::Tensor Product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor rows = x.flatten(0, 2);
  const at::Tensor y = bias.defined() ? at::addmm(bias.squeeze(0), rows, weight.squeeze(0))
                                      : at::mm(rows, weight.squeeze(0));
  return y.view({x.size(0), x.size(1), x.size(2), weight.size(2)});
}

template <typename Function>
void Measure(benchmark::State& state, const Tensors& inputs, const Function& function) {
  at::set_num_threads(1);
  for (auto _ : state) {
    const at::Tensor output = function(inputs);
    output.backward(at::ones_like(output));
    benchmarks::WaitFor(device);
    benchmark::ClobberMemory();
  }
}

Tensors LinearInputs() {
  return {Features(kEncoder), Leaf({1, kEncoder.features, 3 * kEncoder.features}),
          Leaf({1, 3 * kEncoder.features})};
}
void FusedLinear(benchmark::State& state) {
  Measure(state, LinearInputs(), [](const Tensors& x) { return Linear(x[0], x[1], x[2]); });
}
void PlainLinear(benchmark::State& state) {
  Measure(state, LinearInputs(), [](const Tensors& x) { return Product(x[0], x[1], x[2]); });
}

Tensors FeedForwardInputs() {
  return {Features(kEncoder), Leaf({1, kEncoder.features, kEncoder.width}),
          Leaf({1, kEncoder.width}), Leaf({1, kEncoder.width, kEncoder.features}),
          Leaf({1, kEncoder.features})};
}
void FusedFeedForward(benchmark::State& state) {
  Measure(state, FeedForwardInputs(), [](const Tensors& x) {
    return FeedForward(x[0], {.up = x[1], .up_bias = x[2], .down = x[3], .down_bias = x[4]});
  });
}
void PlainFeedForward(benchmark::State& state) {
  Measure(state, FeedForwardInputs(), [](const Tensors& x) {
    return Product(at::relu(Product(x[0], x[1], x[2])), x[3], x[4]);
  });
}

Tensors AddLayerNormInputs() {
  return {Features(kEncoder), Features(kEncoder), Leaf({1, kEncoder.features}),
          Leaf({1, kEncoder.features})};
}
void FusedAddLayerNorm(benchmark::State& state) {
  Measure(state, AddLayerNormInputs(),
          [](const Tensors& x) { return AddLayerNorm(x[0], x[1], x[2], x[3]).features; });
}
void PlainAddLayerNorm(benchmark::State& state) {
  Measure(state, AddLayerNormInputs(), [](const Tensors& x) {
    return at::layer_norm(x[0].add(x[1]), {x[0].size(3)}, x[2].squeeze(0), x[3].squeeze(0),
                          kLayerNormEpsilon);
  });
}

Tensors RmsNormInputs() { return {Features(kDecoder), Leaf({1, kDecoder.features})}; }
void FusedRmsNorm(benchmark::State& state) {
  Measure(state, RmsNormInputs(), [](const Tensors& x) { return RmsNorm(x[0], x[1]); });
}
void PlainRmsNorm(benchmark::State& state) {
  Measure(state, RmsNormInputs(), [](const Tensors& x) {
    const at::Tensor mean_square = x[0].square().mean(-1, /*keepdim=*/true);
    return x[0].mul(at::rsqrt(mean_square.add(kRmsNormEpsilon))).mul(x[1]);
  });
}

Tensors GatedFeedForwardInputs() {
  return {Features(kDecoder), Leaf({1, kDecoder.features, 2 * kDecoder.width}),
          Leaf({1, kDecoder.width, kDecoder.features})};
}
void FusedGatedFeedForward(benchmark::State& state) {
  Measure(state, GatedFeedForwardInputs(), [](const Tensors& x) {
    return GatedFeedForward(x[0], {.inputs = x[1], .output = x[2]}, Gelu::kExact);
  });
}
void PlainGatedFeedForward(benchmark::State& state) {
  Measure(state, GatedFeedForwardInputs(), [](const Tensors& x) {
    const Tensors parts = Product(x[0], x[1], {}).chunk(2, -1);
    return Product(at::gelu(parts[0]).mul(parts[1]), x[2], {});
  });
}

// 40 outputs of two classes, and the number of right ones.
constexpr int64_t kOutputs = 40, kClasses = 2;
struct Answers {
  at::Tensor classes = at::randint(kClasses, {1, kEncoder.sequences, kOutputs},
                                   at::TensorOptions(device).dtype(at::kLong));
  at::Tensor mask =
      at::ones({1, kEncoder.sequences, kOutputs}, at::TensorOptions(device).dtype(at::kBool));
};
Tensors CrossEntropyInputs() { return {Leaf({1, kEncoder.sequences, kOutputs, kClasses})}; }
void FusedCrossEntropy(benchmark::State& state) {
  const Answers answers;
  Measure(state, CrossEntropyInputs(), [&](const Tensors& x) {
    const ClassMeasures measures = CrossEntropy(x[0], answers.classes, answers.mask);
    benchmark::DoNotOptimize(measures.accuracies);
    return measures.losses;
  });
}
void PlainCrossEntropy(benchmark::State& state) {
  const Answers answers;
  Measure(state, CrossEntropyInputs(), [&](const Tensors& x) {
    const at::Tensor right = x[0].argmax(-1).eq(answers.classes).logical_and(answers.mask);
    const at::Tensor accuracies =
        right.flatten(1).sum(1).to(at::kDouble).div(answers.mask.flatten(1).sum(1));
    benchmark::DoNotOptimize(accuracies);
    return at::log_softmax(x[0], -1)
        .gather(-1, answers.classes.unsqueeze(-1))
        .flatten(1)
        .mean(1)
        .neg();
  });
}

BENCHMARK(FusedLinear)->Unit(benchmark::kMillisecond);
BENCHMARK(PlainLinear)->Unit(benchmark::kMillisecond);
BENCHMARK(FusedFeedForward)->Unit(benchmark::kMillisecond);
BENCHMARK(PlainFeedForward)->Unit(benchmark::kMillisecond);
BENCHMARK(FusedAddLayerNorm)->Unit(benchmark::kMillisecond);
BENCHMARK(PlainAddLayerNorm)->Unit(benchmark::kMillisecond);
BENCHMARK(FusedCrossEntropy)->Unit(benchmark::kMillisecond);
BENCHMARK(PlainCrossEntropy)->Unit(benchmark::kMillisecond);
BENCHMARK(FusedRmsNorm)->Unit(benchmark::kMillisecond);
BENCHMARK(PlainRmsNorm)->Unit(benchmark::kMillisecond);
BENCHMARK(FusedGatedFeedForward)->Unit(benchmark::kMillisecond);
BENCHMARK(PlainGatedFeedForward)->Unit(benchmark::kMillisecond);

int Main(int argc, char** argv) {
  device = benchmarks::TakeDevice(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace lengthwise::models

int main(int argc, char** argv) { return lengthwise::models::Main(argc, argv); }
