// Times attention's forward and backward pass on one thread: the fused kernels against plain
// operators. Batch 128, 8 heads of 8 features, as in the training step.
//
//   bazel run -c opt //benchmarks:attention
#include <cmath>
#include <cstdint>

#include "ATen/Parallel.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/randn.h"
#include "ATen/ops/softmax.h"
#include "benchmark/benchmark.h"
#include "models/attention/fused.h"

namespace lengthwise::models {
namespace {

constexpr int64_t kSequences = 128, kHeads = 8, kHeadSize = 8;

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

}  // namespace
}  // namespace lengthwise::models

BENCHMARK_MAIN();
