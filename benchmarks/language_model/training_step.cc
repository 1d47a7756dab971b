// Times a language model's training step: the decoder of decimal addition, AdamW with decay of
// matrices and clipping to norm 1, on examples of one length (Zhou et al. 2024, Table E.1). Prints
// one line of JSON.
//
//   bazel run -c opt //benchmarks/language_model:training_step -- --encoding rope --length 128
//
// benchmarks/compare_training_step.py runs it and PyTorch alternately.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "ATen/ops/cross_entropy_loss.h"
#include "ATen/ops/randint.h"
#include "ATen/ops/tensor.h"
#include "CLI/CLI.hpp"
#include "benchmarks/language_model/decoder.h"
#include "benchmarks/measuring.h"
#include "models/optimizers/catalogue.h"
#include "models/optimizers/optimizer.h"
#include "worker/training/device.h"

namespace lengthwise::benchmarks {
namespace {

struct Options {
  std::string encoding = "rope";
  std::string size = "25M";
  int length = 128;
  int tokens = 2048;
  int steps = 5;
  int threads = 2;
  bool recompute = false;
  bool roofline = false;
};

int Measure(const Options& options) {
  const auto device = worker::training::OpenDevice("cpu", options.threads);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 1;
  }
  worker::training::PrepareThread(*device);
  const DecoderSize size = SizeOf(options.size);
  if (options.roofline) {
    PrintRoofline(at::kCPU, options.tokens, size.d_model, 4 * size.d_model);
    return 0;
  }
  catalogue::Parameters network, given;
  network.Set("recompute_activations", options.recompute);
  const Decoder decoder(size, options.encoding, /*randomized=*/false, options.length, network);
  given.Set("decayed", std::string("matrices"));
  const auto optimizer =
      models::CreateOptimizer("adamw", Resolved(models::OptimizerEntries(), "adamw", given))
          .value();
  const models::ParameterSet parameters = decoder.arena->Members(0, 1);
  const int64_t examples = options.tokens / options.length;
  const int64_t base = PeakBytes();
  constexpr int kWarmUp = 2;
  std::vector<double> wall, cpu;
  double loss = 0;
  for (int step = 1; step <= kWarmUp + options.steps; ++step) {
    const double start = WallSeconds(), cpu_start = CpuSeconds();
    const at::Tensor text = at::randint(kVocabulary, {1, examples, options.length + 1}, at::kLong);
    const at::Tensor logits =
        decoder.model->Forward(parameters,
                               {.tokens = text.narrow(2, 0, options.length).flatten(1, 2),
                                .groups = {{examples, options.length}}},
                               decoder.positions, nullptr, nullptr);
    const at::Tensor mean =
        at::cross_entropy_loss(logits.flatten(0, 1), text.narrow(2, 1, options.length).flatten());
    decoder.arena->gradients().zero_();
    mean.backward();
    const models::Clipping clipping = models::MeasureGradients(*decoder.arena, 0, 1, 1.0);
    optimizer->Step(*decoder.arena, 0, 1, at::tensor(optimizer->StepNumbers(step, {3e-4})),
                    clipping.factors);
    loss = mean.item<double>();
    if (step <= kWarmUp) continue;
    wall.push_back(WallSeconds() - start);
    cpu.push_back(CpuSeconds() - cpu_start);
  }
  std::printf(
      "{\"program\": \"lengthwise\", \"encoding\": \"%s\", \"size\": \"%s\", \"length\": %d, "
      "\"threads\": %d, \"step_seconds_median\": %.6f, \"step_seconds_min\": %.6f, "
      "\"cpu_seconds_median\": %.6f, \"tokens_per_second\": %.1f, \"bytes_over_base\": %lld, "
      "\"loss\": %.6g}\n",
      options.encoding.c_str(), options.size.c_str(), options.length, device->threads, Median(wall),
      *std::min_element(wall.begin(), wall.end()), Median(cpu),
      static_cast<double>(examples * options.length) / Median(wall),
      static_cast<long long>(PeakBytes() - base), loss);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Times a language model's training step");
  app.add_option("--encoding", options.encoding);
  app.add_option("--size", options.size, "1M, 2M, 5M, 25M or 268M");
  app.add_option("--length", options.length, "Tokens of an example")->check(CLI::PositiveNumber);
  app.add_option("--tokens", options.tokens, "Tokens of a step")->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  app.add_flag("--recompute", options.recompute,
               "Gradient checkpointing: recompute activations in the backward pass");
  app.add_flag("--roofline", options.roofline, "Measure products and a copy instead");
  CLI11_PARSE(app, argc, argv);
  return Measure(options);
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
