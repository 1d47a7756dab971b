// Attention by the CPU's kernels and by LibTorch's operators, on one thread. A GPU's are measured
// with whole steps (training_step.cc).
//
// Fused and Plain: forward and backward pass with the training step's sizes: batch 128, 8 heads of
// 8 features.
//
// Evaluated and EvaluatedPlain: forward pass of the encoding "relative" on drawn positions,
// including its terms, d_model 64. Evaluated is the CPU's evaluation, EvaluatedPlain uses
// operators.
//
//   bazel run -c opt //benchmarks:attention
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/randn.h"
#include "ATen/ops/softmax.h"
#include "benchmark/benchmark.h"
#include "c10/core/GradMode.h"
#include "models/attention/attention.h"
#include "models/encodings/relative_logits.h"
#include "models/encodings/sinusoids.h"

namespace lengthwise::models {
namespace {

constexpr int64_t kSequences = 128, kHeads = 8, kHeadSize = 8, kWidth = kHeads * kHeadSize;

enum Kind : int64_t { kNone, kAdditive, kRelative, kToeplitz };

at::Tensor Leaf(at::IntArrayRef shape) { return at::randn(shape).mul(0.3).requires_grad_(true); }

AttentionTerms Terms(int64_t kind, int64_t n) {
  AttentionTerms terms;
  if (kind == kAdditive) terms.additive = Leaf({1, kHeads, n, n}).detach();
  if (kind == kRelative || kind == kToeplitz) {
    terms.toeplitz = kind == kToeplitz;
    terms.relative = terms.toeplitz ? Leaf({1, kHeads, kHeadSize, 2 * n - 1})
                                    : Leaf({1, kHeads, kHeadSize, n, n});
    terms.content_bias = Leaf({1, kHeads, kHeadSize});
    terms.position_bias = Leaf({1, kHeads, kHeadSize});
  }
  return terms;
}

// The formula with plain operators. Materializes R for every pair.
at::Tensor PlainAttention(const at::Tensor& qkv, const AttentionTerms& terms) {
  const int64_t n = qkv.size(2);
  const auto parts = qkv.unflatten(3, {3, kHeads, kHeadSize}).permute({3, 0, 1, 4, 2, 5});
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
  at::Tensor q = parts[0].mul(scale);
  at::Tensor term = terms.additive.defined() ? terms.additive.unsqueeze(1) : at::Tensor();
  if (terms.relative.defined()) {
    // Multiplies [n, B, H, dh] by [n, H, dh, n], each query position separately.
    const at::Tensor queries = q.add(terms.position_bias.mul(scale).unsqueeze(1).unsqueeze(3));
    term = at::matmul(queries.squeeze(0).permute({2, 1, 0, 3}),
                      terms.relative.squeeze(0).permute({2, 0, 1, 3}))
               .permute({2, 1, 0, 3})
               .reshape({1, kSequences, kHeads, n, n});
    q = q.add(terms.content_bias.mul(scale).unsqueeze(1).unsqueeze(3));
  }
  at::Tensor logits = at::matmul(q, parts[1].transpose(-1, -2));
  if (term.defined()) logits = logits.add(term);
  return at::matmul(at::softmax(logits, -1), parts[2])
      .transpose(2, 3)
      .reshape({1, kSequences, n, kHeads * kHeadSize});
}

void Measure(benchmark::State& state, bool fused) {
  at::set_num_threads(1);
  const int64_t n = state.range(1);
  const at::Tensor qkv = Leaf({1, kSequences, n, 3 * kHeads * kHeadSize});
  const AttentionTerms terms = Terms(state.range(0), n);
  for (auto _ : state) {
    const at::Tensor output =
        fused ? FusedAttention(qkv, kHeads, terms) : PlainAttention(qkv, terms);
    output.backward(at::ones_like(output));
    benchmark::ClobberMemory();
  }
}

// One block's attention of an evaluation.
struct Evaluation {
  Evaluation(int64_t sequences, int64_t n)
      : qkv(Leaf({1, sequences, n, 3 * kWidth}).detach()),
        projection(Leaf({1, kWidth, kWidth}).detach()),
        content_bias(Leaf({1, kHeads, kHeadSize}).detach()),
        position_bias(Leaf({1, kHeads, kHeadSize}).detach()),
        // n of 2,048 positions, evenly spread.
        positions(at::arange(n, at::kLong).mul(2048 / n).add(1).view({1, n})) {}

  at::Tensor qkv, projection, content_bias, position_bias, positions;
};

// Same as Relative::RowsAtOnce of models/encodings/relative.cc.
int64_t RowsAtOnce(int64_t n) {
  return std::clamp((int64_t{1} << 22) / (n * kWidth), int64_t{1}, n);
}

at::Tensor EvaluateFused(const Evaluation& of) {
  const int64_t n = of.positions.size(1), rows = RowsAtOnce(n);
  const at::Tensor sinusoids = Sinusoids(of.positions, kWidth, at::kFloat);
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t count = std::min(rows, n - first);
    AttentionTerms terms;
    terms.relative = at::mm(of.projection.squeeze(0).t(),
                            SinusoidsOfDifferences(sinusoids, first, count).flatten(0, 2).t())
                         .view({1, kHeads, kHeadSize, count, n});
    terms.content_bias = of.content_bias;
    terms.position_bias = of.position_bias;
    parts.push_back(FusedAttentionRows(of.qkv, kHeads, first, count, terms));
  }
  return at::cat(parts, 2);
}

at::Tensor EvaluateByOperators(const Evaluation& of) {
  const int64_t n = of.positions.size(1);
  const auto parts = of.qkv.unflatten(3, {3, kHeads, kHeadSize}).permute({3, 0, 1, 4, 2, 5});
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
  const at::Tensor sinusoids = Sinusoids(of.positions, kWidth, at::kFloat);
  const at::Tensor biased = parts[0].add(of.position_bias.unsqueeze(1).unsqueeze(3)).mul(scale);
  at::Tensor logits = at::matmul(parts[0].add(of.content_bias.unsqueeze(1).unsqueeze(3)).mul(scale),
                                 parts[1].transpose(-1, -2));
  logits.add_(DifferenceLogits(biased, sinusoids, of.projection, RowsAtOnce(n)));
  return at::matmul(at::softmax(logits, -1), parts[2]).transpose(2, 3).flatten(3, 4);
}

template <typename Function>
void MeasureEvaluation(benchmark::State& state, const Function& function) {
  at::set_num_threads(1);
  const c10::NoGradGuard no_gradients;
  const Evaluation evaluation(state.range(0), state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(evaluation));
    benchmark::ClobberMemory();
  }
}

void Evaluated(benchmark::State& state) { MeasureEvaluation(state, EvaluateFused); }
void EvaluatedPlain(benchmark::State& state) { MeasureEvaluation(state, EvaluateByOperators); }

void EvaluationShapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"sequences", "tokens"})->Unit(benchmark::kMillisecond);
  for (const int64_t n : {250, 500}) {
    for (const int64_t sequences : {1, 8, 32}) benchmark->Args({sequences, n});
  }
}

void Fused(benchmark::State& state) { Measure(state, true); }
void Plain(benchmark::State& state) { Measure(state, false); }

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"term", "tokens"})->Unit(benchmark::kMillisecond);
  for (const int64_t n : {20, 80, 120}) {
    for (const int64_t kind : {kNone, kAdditive, kRelative}) benchmark->Args({kind, n});
  }
}

BENCHMARK(Fused)->Apply(Shapes)->Args({kToeplitz, 80});
BENCHMARK(Plain)->Apply(Shapes);
BENCHMARK(Evaluated)->Apply(EvaluationShapes);
BENCHMARK(EvaluatedPlain)->Apply(EvaluationShapes);

}  // namespace
}  // namespace lengthwise::models

BENCHMARK_MAIN();
