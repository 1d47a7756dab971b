// Greedy decoding with a cache of keys and values beside decoding that computes all tokens again
// for each, alternately, on the same prompts. One line of JSON.
//
//   bazel run -c opt //benchmarks/language_model:decoding -- --size 1M --prompt 406 --answer 202
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
  // Additions of 100 digits with hints: 2 * 2 * 101 tokens, '+' and '='; 2 * 101.
  int prompt = 406;
  int answer = 202;
  int sequences = 8;
  int rounds = 1;
  int threads = 2;
};

at::Tensor Best(const at::Tensor& logits) { return logits.argmax(-1).unsqueeze(-1); }

// The answers of prompts [1, B, n], [1, B, answer].
at::Tensor DecodeWithCache(const Decoder& decoder, const at::Tensor& prompts, int answer) {
  const models::ParameterSet parameters = decoder.arena->Members(0, 1);
  const auto cache = decoder.model->StartDecoding(parameters, prompts.size(1), decoder.positions);
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
  std::vector<double> cached, again;
  at::Tensor cached_answers, answers;
  for (int round = 0; round < options.rounds; ++round) {
    double start = WallSeconds();
    cached_answers = DecodeWithCache(decoder, prompts, options.answer);
    cached.push_back(WallSeconds() - start);
    start = WallSeconds();
    answers = DecodeAgain(decoder, prompts, options.answer);
    again.push_back(WallSeconds() - start);
  }
  std::printf(
      "{\"encoding\": \"%s\", \"size\": \"%s\", \"sequences\": %d, \"prompt\": %d, \"answer\": "
      "%d, \"threads\": %d, \"cached_seconds\": %.4f, \"recomputed_seconds\": %.4f, \"ratio\": "
      "%.2f, \"cached_tokens_per_second\": %.1f, \"same_tokens\": %.4f}\n",
      options.encoding.c_str(), options.size.c_str(), options.sequences, options.prompt,
      options.answer, device->threads, Median(cached), Median(again),
      Median(again) / Median(cached), options.sequences * options.answer / Median(cached),
      cached_answers.eq(answers).to(at::kDouble).mean().item<double>());
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Times decoding with a cache and without one");
  app.add_option("--encoding", options.encoding);
  app.add_option("--size", options.size, "1M, 2M, 5M, 25M or 268M");
  app.add_option("--prompt", options.prompt, "tokens")->check(CLI::PositiveNumber);
  app.add_option("--answer", options.answer, "tokens")->check(CLI::PositiveNumber);
  app.add_option("--sequences", options.sequences, "of the batch")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  CLI11_PARSE(app, argc, argv);
  return Measure(options);
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
