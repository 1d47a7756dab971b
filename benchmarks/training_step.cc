// Times the product's training step: reverse string, batch 128, 5 blocks of 8 heads and d_model 64,
// Adam with clipping to norm 1 (Ruoss et al. 2023, appendix B). Prints one line of JSON for each
// precision, length and pack size.
//
//   bazel run -c opt //benchmarks:training_step -- --encoding randomized_relative --length 40
//   bazel run -c opt //benchmarks:training_step -- --device cuda --packs 1 10 30
//       --lengths 20 40 1..40 --precisions float32 bfloat16
//
// benchmarks/compare_training_step.py runs it and PyTorch alternately.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "benchmarks/measuring.h"
#include "models/layers/kernel_choice.h"
#include "platform/status_macros.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_kernels.h"
#include "worker/training/pack_model.h"

// `ncu --profile-from-start off` counts what lies between them. Null in programs without CUDA.
extern "C" [[gnu::weak]] int cudaProfilerStart();
extern "C" [[gnu::weak]] int cudaProfilerStop();

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
  // Of randomized positions.
  std::string draws = "shared";
  // For the encoding `formula`.
  std::string logits, parameters;
  std::string device = "cpu";
  std::vector<std::string> precisions = {"float32"};
  std::vector<std::string> lengths = {"40"};
  std::vector<int> packs = {1};
  std::string kernels = "auto";
  int steps = 20;
  int threads = 2;
  bool roofline = false;
};

// One measurement.
struct Case {
  std::string precision;
  int shortest = 0;
  int longest = 0;
  int pack = 0;
};

// Accepts "40" or "1..40"; returns false for anything else.
bool ParseLengths(absl::string_view text, Case& result) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits("..", 1));
  return absl::SimpleAtoi(ends.first, &result.shortest) &&
         absl::SimpleAtoi(absl::StrContains(text, "..") ? ends.second : ends.first,
                          &result.longest) &&
         result.shortest >= 1 && result.longest >= result.shortest;
}

// CLI11's validator convention: an error message, or empty.
std::string CheckLengths(const std::string& text) {
  Case ignored;
  if (ParseLengths(text, ignored)) return "";
  return absl::StrCat("\"", text, "\" is neither a length, such as 40, nor a range, such as 1..40");
}

v1::TrialSpecification Trial(const Options& options, const Case& measured) {
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
    encoding["draws"].set_string_value(options.draws);
  }
  if (!options.logits.empty()) {
    auto& encoding = *trial.mutable_encoding()->mutable_parameters();
    encoding["logits"].set_string_value(options.logits);
    encoding["parameters"].set_string_value(options.parameters);
  }
  v1::Training& training = *trial.mutable_training();
  training.set_steps(1000000);  // more than are measured
  training.set_report_every_steps(1);
  training.set_batch_size(128);
  training.mutable_lengths()->set_min(measured.shortest);
  training.mutable_lengths()->set_max(measured.longest);
  training.mutable_optimizer()->set_name("adam");
  training.mutable_schedule()->set_name("constant");
  training.set_clip_norm(1);
  training.set_precision(measured.precision);
  trial.mutable_evaluation()->add_lengths(measured.longest);
  trial.mutable_evaluation()->set_sequences(1);
  return trial;
}

absl::Status Measure(const Options& options, const Case& measured, const Device& device,
                     PackKernels& kernels) {
  ASSIGN_OR_RETURN(const Blueprint blueprint, MakeBlueprint(Trial(options, measured)));
  std::vector<MemberSeeds> seeds;
  std::vector<int64_t> members;
  for (int i = 0; i < measured.pack; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    seeds.push_back({.weight_seed = seed, .data_seed = seed});
    members.push_back(i);
  }
  const std::vector<double> learning_rates(members.size(), 3e-4);
  const PackKernels::Chosen chosen = kernels.Choose(blueprint, measured.pack);
  const models::KernelScope scope(chosen.choice);
  ASSIGN_OR_RETURN(const std::unique_ptr<PackModel> model,
                   CreatePackModel(blueprint, seeds, device, [](const std::string& text) {
                     std::fprintf(stderr, "%s\n", text.c_str());
                   }));
  const int64_t base = PeakBytes();
  std::vector<double> wall, cpu;
  float loss = 0;
  // A GPU records a length at its first step and verifies the recording at its second. With eight
  // draws for each length, hardly any length has fewer than two.
  const int distinct = measured.longest - measured.shortest + 1;
  const int warm_up = device.cuda ? kWarmUp + 8 * distinct : kWarmUp;
  const bool overlaps = model->OverlapsSteps();
  for (int step = 1; step <= warm_up + options.steps; ++step) {
    const double start = WallSeconds(), cpu_start = CpuSeconds();
    // The first step is not recorded, so that its kernels can be counted one by one.
    const bool counted = step == 1 && device.cuda && cudaProfilerStart != nullptr;
    if (counted) cudaProfilerStart();
    // As a pack trains: a GPU has the next step before the host reads this one's measurements.
    model->StartStep(step, members, learning_rates);
    if (counted) cudaProfilerStop();
    if (!overlaps || step > 1) loss = model->FinishStep()[0].loss;
    if (step <= warm_up) continue;
    wall.push_back(WallSeconds() - start);
    cpu.push_back(CpuSeconds() - cpu_start);
  }
  if (overlaps) loss = model->FinishStep()[0].loss;
  std::printf(
      "{\"program\": \"lengthwise\", \"encoding\": \"%s\", \"length\": %d, \"shortest\": %d, "
      "\"device\": \"%s\", \"kernels\": \"%s\", \"precision\": \"%s\", \"pack\": %d, "
      "\"threads\": %d, "
      "\"step_seconds_median\": %.6f, \"step_seconds_mean\": %.6f, \"step_seconds_min\": %.6f, "
      "\"cpu_seconds_median\": %.6f, \"cpu_seconds_mean\": %.6f, \"bytes_over_base\": %lld, "
      "\"loss\": %.6g}\n",
      options.encoding.c_str(), measured.longest, measured.shortest,
      device.provenance.device().c_str(), chosen.summary.c_str(), measured.precision.c_str(),
      measured.pack, device.threads, Median(wall), Mean(wall),
      *std::min_element(wall.begin(), wall.end()), Median(cpu), Mean(cpu),
      static_cast<long long>(PeakBytes() - base), loss);
  std::fflush(stdout);  // keeps this result if a later case fails
  return absl::OkStatus();
}

int MeasureAll(const Options& options) {
  const auto device = OpenDevice(options.device, options.threads);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 1;
  }
  PrepareThread(*device);
  if (options.roofline) {
    benchmarks::PrintRoofline(
        device->cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device->index))
                     : at::kCPU,
        10240, 64, 256);
    return 0;
  }
  PackKernels kernels(*device, {.mode = options.kernels});
  for (const std::string& precision : options.precisions) {
    for (const std::string& lengths : options.lengths) {
      for (const int pack : options.packs) {
        Case measured = {.precision = precision, .pack = pack};
        ParseLengths(lengths, measured);
        if (const absl::Status status = Measure(options, measured, *device, kernels);
            !status.ok()) {
          std::fprintf(stderr, "%s\n", status.ToString().c_str());
          return 1;
        }
      }
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Times the training step");
  app.add_option("--encoding", options.encoding,
                 "Encoding. randomized_NAME draws positions from 0 .. 2047");
  app.add_option("--draws", options.draws,
                 "Draws of randomized positions: shared, per_sequence or per_block");
  app.add_option("--logits", options.logits, "Formula of the encoding formula");
  app.add_option(
      "--formula_parameters", options.parameters,
      "Parameters of the encoding formula, such as \"a per head = 1; b per head = 0.1\"");
  app.add_option("--length,--lengths", options.lengths,
                 "Input lengths, half of the tokens: 40, or 1..40 to draw each step's length as "
                 "training does")
      ->check(CheckLengths);
  app.add_option("--device", options.device, "cpu, cuda or auto");
  app.add_option("--kernels", options.kernels, "As of the worker")
      ->check(CLI::IsMember({"auto", "fused", "plain"}));
  app.add_option("--precision,--precisions", options.precisions, "float32 or bfloat16");
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  app.add_option("--pack,--packs", options.packs, "Models of a pack")->check(CLI::PositiveNumber);
  app.add_flag("--roofline", options.roofline, "Measure products and a copy instead");
  CLI11_PARSE(app, argc, argv);
  return MeasureAll(options);
}

}  // namespace
}  // namespace lengthwise::worker::training

int main(int argc, char** argv) { return lengthwise::worker::training::Main(argc, argv); }
