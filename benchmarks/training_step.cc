// Time of the product's training step: reverse string, batch 128, 5 blocks of 8 heads and d_model
// 64, Adam with clipping to norm 1 (Ruoss et al. 2023, appendix B). One line of JSON.
//
//   bazel run -c opt //benchmarks:training_step -- --encoding randomized_relative --length 40
//
// benchmarks/compare_training_step.py runs it and PyTorch alternately.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "benchmarks/measuring.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"

namespace lengthwise::worker::training {
namespace {

using benchmarks::CpuSeconds;
using benchmarks::Mean;
using benchmarks::Median;
using benchmarks::PeakBytes;
using benchmarks::WallSeconds;

constexpr int kWarmUp = 3;

struct Options {
  std::string encoding = "randomized_relative";
  std::string device = "cpu";
  std::string precision = "float32";
  int length = 40;
  int shortest = 0;
  int steps = 20;
  int threads = 2;
  int pack = 1;
  bool roofline = false;
};

v1::TrialSpecification Trial(const Options& options) {
  v1::TrialSpecification trial;
  trial.mutable_task()->set_name("reverse_string");
  trial.mutable_network()->set_name("encoder");
  absl::string_view name = options.encoding;
  const bool randomized = absl::ConsumePrefix(&name, "randomized_");
  trial.mutable_encoding()->set_name(std::string(name));
  if (randomized) {
    auto& encoding = *trial.mutable_encoding()->mutable_parameters();
    encoding["randomized"].set_bool_value(true);
    encoding["max_position"].set_number_value(2048);
  }
  v1::Training& training = *trial.mutable_training();
  training.set_steps(1000000);  // more than are made
  training.set_report_every_steps(1);
  training.set_batch_size(128);
  training.mutable_lengths()->set_min(options.shortest == 0 ? options.length : options.shortest);
  training.mutable_lengths()->set_max(options.length);
  training.mutable_optimizer()->set_name("adam");
  training.mutable_schedule()->set_name("constant");
  training.set_clip_norm(1);
  training.set_precision(options.precision);
  trial.mutable_evaluation()->add_lengths(options.length);
  trial.mutable_evaluation()->set_sequences(1);
  return trial;
}

int Measure(const Options& options) {
  const auto device = OpenDevice(options.device, options.threads);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 1;
  }
  PrepareThread(*device);
  if (options.roofline) {
    benchmarks::PrintRoofline(10240, 64, 256);
    return 0;
  }
  const auto blueprint = MakeBlueprint(Trial(options));
  if (!blueprint.ok()) {
    std::fprintf(stderr, "%s\n", blueprint.status().ToString().c_str());
    return 1;
  }
  std::vector<MemberSeeds> seeds;
  std::vector<int64_t> members;
  for (int i = 0; i < options.pack; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    seeds.push_back({.weight_seed = seed, .data_seed = seed});
    members.push_back(i);
  }
  const std::vector<double> learning_rates(members.size(), 3e-4);
  const auto model = CreatePackModel(*blueprint, seeds, *device, [](const std::string& text) {
                       std::fprintf(stderr, "%s\n", text.c_str());
                     }).value();
  const int64_t base = PeakBytes();
  std::vector<double> wall, cpu;
  float loss = 0;
  // A GPU records each length when it comes up first and looks at the recording the next time: of
  // eight draws for each, hardly one has fewer than two.
  const int distinct = options.shortest == 0 ? 1 : options.length - options.shortest + 1;
  const int warm_up = device->cuda ? kWarmUp + 8 * distinct : kWarmUp;
  for (int step = 1; step <= warm_up + options.steps; ++step) {
    const double start = WallSeconds(), cpu_start = CpuSeconds();
    loss = model->TrainStep(step, members, learning_rates)[0].loss;
    if (step <= warm_up) continue;
    wall.push_back(WallSeconds() - start);
    cpu.push_back(CpuSeconds() - cpu_start);
  }
  std::printf(
      "{\"program\": \"lengthwise\", \"encoding\": \"%s\", \"length\": %d, \"shortest\": %d, "
      "\"device\": \"%s\", \"precision\": \"%s\", \"pack\": %d, \"threads\": %d, "
      "\"step_seconds_median\": %.6f, \"step_seconds_mean\": %.6f, \"step_seconds_min\": %.6f, "
      "\"cpu_seconds_median\": %.6f, \"cpu_seconds_mean\": %.6f, \"bytes_over_base\": %lld, "
      "\"loss\": %.6g}\n",
      options.encoding.c_str(), options.length, options.length - distinct + 1,
      device->provenance.device().c_str(), options.precision.c_str(), options.pack, device->threads,
      Median(wall), Mean(wall), *std::min_element(wall.begin(), wall.end()), Median(cpu), Mean(cpu),
      static_cast<long long>(PeakBytes() - base), loss);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Times the training step");
  app.add_option("--encoding", options.encoding,
                 "randomized_NAME: with positions drawn from 0 .. 2047");
  app.add_option("--length", options.length, "of the input; tokens are twice as many");
  app.add_option("--shortest", options.shortest,
                 "draw each step's length from here to --length, as training does");
  app.add_option("--device", options.device, "cpu, cuda or auto");
  app.add_option("--precision", options.precision, "float32 or bfloat16");
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  app.add_option("--pack", options.pack, "models in the pack")->check(CLI::PositiveNumber);
  app.add_flag("--roofline", options.roofline, "measure products and a copy instead");
  CLI11_PARSE(app, argc, argv);
  return Measure(options);
}

}  // namespace
}  // namespace lengthwise::worker::training

int main(int argc, char** argv) { return lengthwise::worker::training::Main(argc, argv); }
