#include "worker/training/text_examples.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace lengthwise::worker::training {

int64_t TextPass::examples() const {
  int64_t count = 0;
  for (const Group& group : groups) count += group.examples;
  return count;
}

int64_t TextPass::Counted() const {
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), tasks::kNoTarget);
}

std::vector<TextPass> MakePasses(std::vector<TextPiece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const TextPiece& a, const TextPiece& b) {
    return a.tokens.size() < b.tokens.size();
  });
  std::vector<TextPass> passes;
  for (const TextPiece& piece : pieces) {
    const auto length = static_cast<int64_t>(piece.tokens.size());
    if (passes.empty() ||
        static_cast<int64_t>(passes.back().tokens.size()) + length > kPassTokens) {
      passes.emplace_back();
    }
    TextPass& pass = passes.back();
    if (pass.groups.empty() || pass.groups.back().length != length) {
      pass.groups.push_back({.examples = 0, .length = length});
    }
    ++pass.groups.back().examples;
    pass.tokens.insert(pass.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    pass.targets.insert(pass.targets.end(), piece.targets.begin(), piece.targets.end());
  }
  return passes;
}

TextExamples::TextExamples(std::unique_ptr<tasks::TextTask> task, const v1::Training& training)
    : task_(std::move(task)), training_(training) {}

int64_t TextExamples::LongestTraining(const v1::Training& training) const {
  return tasks::LongestTraining(*task_, training.lengths().max(), training.packing().tokens(),
                                training.packing().attend_across());
}

double TextExamples::ExamplesOfStep(const v1::Training& training) const {
  double tokens = 0;
  const v1::LengthRange& sizes = training.lengths();
  for (int64_t n = sizes.min(); n <= sizes.max(); ++n) {
    tokens += static_cast<double>(task_->LongestExample(n));
  }
  const double mean = tokens / (sizes.max() - sizes.min() + 1);
  return static_cast<double>(training.batch_size()) * training.packing().tokens() / mean;
}

absl::StatusOr<GivenSequence> TextExamples::Given(const v1::TokenSequence& input) const {
  return absl::InvalidArgumentError("text tasks take no inputs of a user's");
}

std::vector<TextPass> TextExamples::TrainingPasses(uint64_t data_seed, int64_t step) const {
  const v1::Packing& packing = training_.packing();
  const tasks::PackedBatch batch =
      tasks::PackTrainingBatch(*task_,
                               {.seed = data_seed,
                                .smallest_size = training_.lengths().min(),
                                .largest_size = training_.lengths().max(),
                                .examples = training_.examples()},
                               static_cast<uint64_t>(step),
                               {.sequences = training_.batch_size(),
                                .length = packing.tokens(),
                                .positions_restart = !packing.attend_across(),
                                .answers_only = packing.answers_only()});
  std::vector<TextPiece> pieces;
  const auto length = static_cast<size_t>(packing.tokens());
  for (size_t place = 0; place < batch.tokens.size(); ++place) {
    if (batch.segments[place] == tasks::kNoExample) continue;
    const bool continues =
        place % length != 0 &&
        (packing.attend_across() || batch.segments[place] == batch.segments[place - 1]);
    if (!continues) pieces.emplace_back();
    pieces.back().tokens.push_back(batch.tokens[place]);
    pieces.back().targets.push_back(batch.targets[place]);
  }
  return MakePasses(std::move(pieces));
}

tasks::TextExample TextExamples::Question(uint64_t seed, int64_t n, int64_t number) const {
  random::Stream stream(seed, random::Purpose::kEvaluationSamples, static_cast<uint64_t>(n),
                        static_cast<uint32_t>(number));
  return task_->Sample(n, /*augmented=*/false, stream);
}

TextPiece TextExamples::AnswerPiece(const tasks::TextExample& example) {
  TextPiece piece;
  piece.tokens.assign(example.tokens.begin(), example.tokens.end());
  piece.targets.assign(example.tokens.size(), tasks::kNoTarget);
  for (size_t i = example.prompt; i < example.tokens.size(); ++i) {
    piece.targets[i - 1] = example.tokens[i];
  }
  return piece;
}

}  // namespace lengthwise::worker::training
