// Compares greedy decoding with a cache of keys and values against decoding that recomputes every
// token. Alternates between them, batch by batch, on the same prompts. Prints one line of JSON.
//
//   bazel run -c opt //benchmarks/language_model:decoding -- --size 1M --prompt 406 --answer 202
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/randint.h"
#include "CLI/CLI.hpp"
#include "benchmarks/language_model/decoder.h"
#include "benchmarks/measuring.h"
#include "c10/core/GradMode.h"
#include "worker/training/device.h"

namespace lengthwise::benchmarks {
namespace {

struct Options {
  std::string encoding = "fire";
  std::string size = "1M";
  // Additions of 100 digits with hints: 2 * 2 * 101 tokens, '+' and '='; answers have 2 * 101.
  int prompt = 406;
  int answer = 202;
  int sequences = 8;
  int batch = 8;
  // Number of sequences, the first ones, to decode also without the cache; 0: all. A minute with
  // the cache is an hour without.
  int recomputed = 0;
  int rounds = 1;
  int threads = 2;
};

at::Tensor Best(const at::Tensor& logits) { return logits.argmax(-1).unsqueeze(-1); }

// Decodes the answers of prompts [1, B, n]. Returns [1, B, answer].
at::Tensor DecodeWithCache(const Decoder& decoder, const at::Tensor& prompts, int answer) {
  const models::ParameterSet parameters = decoder.arena->Members(0, 1);
  const auto cache = decoder.model->StartDecoding(decoder.positions);
  std::vector<at::Tensor> tokens = {Best(decoder.model->Decode(parameters, prompts, *cache))};
  while (static_cast<int>(tokens.size()) < answer) {
    tokens.push_back(Best(decoder.model->Decode(parameters, tokens.back(), *cache)));
  }
  return at::cat(tokens, 2);
}

at::Tensor DecodeAgain(const Decoder& decoder, const at::Tensor& prompts, int answer) {
  const models::ParameterSet parameters = decoder.arena->Members(0, 1);
  at::Tensor text = prompts;
  for (int i = 0; i < answer; ++i) {
    const int64_t count = text.size(1), length = text.size(2);
    const at::Tensor logits =
        decoder.model->Forward(parameters, {.tokens = text.flatten(1), .groups = {{count, length}}},
                               decoder.positions, nullptr, nullptr);
    text = at::cat({text, Best(logits.unflatten(1, {count, length}).select(2, length - 1))}, 2);
  }
  return text.narrow(2, prompts.size(2), answer);
}

int Measure(const Options& options) {
  const auto device = worker::training::OpenDevice("cpu", options.threads);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 1;
  }
  worker::training::PrepareThread(*device);
  const c10::NoGradGuard no_gradients;
  const Decoder decoder(SizeOf(options.size), options.encoding, options.encoding != "none",
                        options.prompt + options.answer);
  const at::Tensor prompts =
      at::randint(kVocabulary, {1, options.sequences, options.prompt}, at::kLong);
  const int recomputed = options.recomputed == 0 ? options.sequences : options.recomputed;
  // Seconds for each sequence.
  std::vector<double> cached, again;
  double same = 0;
  for (int round = 0; round < options.rounds; ++round) {
    double cached_seconds = 0, again_seconds = 0;
    same = 0;
    for (int first = 0; first < options.sequences; first += options.batch) {
      const int count = std::min(options.batch, options.sequences - first);
      const at::Tensor batch = prompts.narrow(1, first, count);
      double start = WallSeconds();
      const at::Tensor cached_answers = DecodeWithCache(decoder, batch, options.answer);
      cached_seconds += WallSeconds() - start;
      const int again_count = std::min(count, recomputed - first);
      if (again_count <= 0) continue;
      start = WallSeconds();
      const at::Tensor answers =
          DecodeAgain(decoder, batch.narrow(1, 0, again_count), options.answer);
      again_seconds += WallSeconds() - start;
      same +=
          cached_answers.narrow(1, 0, again_count).eq(answers).to(at::kDouble).sum().item<double>();
    }
    cached.push_back(cached_seconds / options.sequences);
    again.push_back(again_seconds / recomputed);
  }
  std::printf(
      "{\"encoding\": \"%s\", \"size\": \"%s\", \"sequences\": %d, \"batch\": %d, "
      "\"recomputed_sequences\": %d, \"prompt\": %d, \"answer\": %d, \"threads\": %d, "
      "\"cached_seconds\": %.4f, \"recomputed_seconds\": %.4f, \"ratio_per_sequence\": %.2f, "
      "\"cached_tokens_per_second\": %.1f, \"same_tokens\": %.4f}\n",
      options.encoding.c_str(), options.size.c_str(), options.sequences, options.batch, recomputed,
      options.prompt, options.answer, device->threads, Median(cached) * options.sequences,
      Median(again) * recomputed, Median(again) / Median(cached), options.answer / Median(cached),
      same / recomputed / options.answer);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Compares decoding with and without a cache");
  app.add_option("--encoding", options.encoding);
  app.add_option("--size", options.size, "1M, 2M, 5M, 25M or 268M");
  app.add_option("--prompt", options.prompt, "Tokens of a prompt")->check(CLI::PositiveNumber);
  app.add_option("--answer", options.answer, "Tokens of an answer")->check(CLI::PositiveNumber);
  app.add_option("--sequences", options.sequences)->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Sequences decoded together")
      ->check(CLI::PositiveNumber);
  app.add_option("--recomputed", options.recomputed,
                 "Number of sequences, the first ones, to decode also without the cache; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  CLI11_PARSE(app, argc, argv);
  options.recomputed = std::min(options.recomputed, options.sequences);
  return Measure(options);
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
