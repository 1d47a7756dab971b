#include "worker/data/text_examples.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "specification/training_data.h"

namespace lengthwise::worker::data {
namespace {

// Appends the pieces of the sequence at places start .. end - 1 of the batch.
void AddSequence(const tasks::PackedBatch& batch, size_t start, size_t end,
                 const v1::Packing& packing, std::vector<TextPiece>& pieces) {
  while (end > start && batch.segments[end - 1] == tasks::kNoExample) --end;
  // Runs are only needed if attention and positions disagree on where a sequence begins.
  const bool across = packing.attend_across(), restart = specification::RestartsPositions(packing);
  const bool agree = across != restart;
  for (size_t place = start; place < end; ++place) {
    const bool new_example = place == start || batch.segments[place] != batch.segments[place - 1];
    if (place == start || (new_example && !across)) pieces.emplace_back();
    TextPiece& piece = pieces.back();
    piece.tokens.push_back(batch.tokens[place]);
    piece.targets.push_back(batch.targets[place]);
    if (!batch.ids.empty()) piece.ids.push_back(batch.ids[place]);
    if (agree) continue;
    if (new_example) {
      piece.runs.push_back(
          {.of = restart ? 0 : static_cast<int64_t>(end - start), .first = batch.positions[place]});
    }
    PositionRun& run = piece.runs.back();
    ++run.count;
    if (restart) run.of = run.count;
  }
}

// The prompt's last token predicts the answer's first token, which is the first counted target.
int64_t PromptOf(const TextPiece& piece) {
  const auto counts = [](int64_t target) { return target != tasks::kNoTarget; };
  return std::find_if(piece.targets.begin(), piece.targets.end(), counts) - piece.targets.begin() +
         1;
}

}  // namespace

int64_t TextPass::examples() const {
  int64_t count = 0;
  for (const Group& group : groups) count += group.examples;
  return count;
}

int64_t TextPass::Counted() const {
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), tasks::kNoTarget);
}

std::vector<TextPass> MakePasses(const std::vector<TextPiece>& pieces) {
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t first, size_t second) {
    const TextPiece &a = pieces[first], &b = pieces[second];
    return std::forward_as_tuple(a.tokens.size(), a.runs, a.prompt) <
           std::forward_as_tuple(b.tokens.size(), b.runs, b.prompt);
  });
  std::vector<TextPass> passes;
  for (const size_t index : order) {
    const TextPiece& piece = pieces[index];
    const auto length = static_cast<int64_t>(piece.tokens.size());
    if (passes.empty() ||
        static_cast<int64_t>(passes.back().tokens.size()) + length > kPassTokens) {
      passes.emplace_back();
    }
    TextPass& pass = passes.back();
    if (pass.groups.empty() || pass.groups.back().length != length ||
        pass.groups.back().runs != piece.runs || pass.groups.back().prompt != piece.prompt) {
      pass.groups.push_back(
          {.examples = 0, .length = length, .runs = piece.runs, .prompt = piece.prompt});
    }
    ++pass.groups.back().examples;
    pass.pieces.push_back(index);
    pass.tokens.insert(pass.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    pass.targets.insert(pass.targets.end(), piece.targets.begin(), piece.targets.end());
    pass.ids.insert(pass.ids.end(), piece.ids.begin(), piece.ids.end());
  }
  return passes;
}

TextExamples::TextExamples(std::unique_ptr<tasks::TextTask> task, const v1::Training& training,
                           bool marks_prompts)
    : task_(std::move(task)), training_(training), marks_prompts_(marks_prompts) {}

int64_t TextExamples::LongestTraining(const v1::Training& training) const {
  const v1::Packing& packing = training.packing();
  return tasks::LongestTraining(*task_, training.lengths().max(), packing.tokens(),
                                specification::JoinsExamples(packing));
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
  std::vector<int64_t> tokens;
  if (input.text().empty()) {
    ASSIGN_OR_RETURN(tokens, GivenTokens(input, task_->end_token()));
  } else {
    ASSIGN_OR_RETURN(const std::vector<int32_t> parsed, task_->Parse(input.text()));
    tokens.assign(parsed.begin(), parsed.end());
  }
  if (tokens.empty()) return absl::InvalidArgumentError("it is empty");
  ASSIGN_OR_RETURN(const int64_t size, tasks::SizeOfPrompt(*task_, tokens.size()));
  return GivenSequence{.length = size, .tokens = std::move(tokens)};
}

tasks::PackedBatch TextExamples::BatchOfStep(uint64_t data_seed, int64_t step) const {
  const v1::Packing& packing = training_.packing();
  const tasks::PackingOptions options = {
      .sequences = training_.batch_size(),
      .length = packing.tokens(),
      .positions_restart = specification::RestartsPositions(packing),
      .answers_only = packing.answers_only()};
  tasks::TextData data = {.seed = data_seed,
                          .smallest_size = training_.lengths().min(),
                          .largest_size = training_.lengths().max(),
                          .examples = training_.examples(),
                          .set_seed = specification::DataSetSeed(training_, data_seed)};
  if (!specification::GoesThroughText(training_)) {
    return tasks::PackTrainingBatch(*task_, data, static_cast<uint64_t>(step), options);
  }
  const platform::MutexLock lock(mutex_);
  Reached& reached = reached_[data_seed];
  if (step < reached.step) reached = {};
  while (reached.step + 1 < step) {
    reached.range = tasks::RangeOfEpochBatch(*task_, data, reached.range.end, options);
    ++reached.step;
  }
  const int64_t first = step == reached.step ? reached.range.first : reached.range.end;
  tasks::EpochBatch batch = tasks::PackEpochBatch(*task_, data, first, options);
  reached = {.step = step, .range = batch.range};
  return std::move(batch.batch);
}

std::vector<TextPass> TextExamples::TrainingPasses(uint64_t data_seed, int64_t step) const {
  const v1::Packing& packing = training_.packing();
  const tasks::PackedBatch batch = BatchOfStep(data_seed, step);
  std::vector<TextPiece> pieces;
  const auto length = static_cast<size_t>(packing.tokens());
  for (size_t start = 0; start < batch.tokens.size(); start += length) {
    AddSequence(batch, start, start + length, packing, pieces);
  }
  if (marks_prompts_) {
    for (TextPiece& piece : pieces) piece.prompt = PromptOf(piece);
  }
  return MakePasses(pieces);
}

TextPiece TextExamples::AnswerPiece(const tasks::TextExample& example) const {
  TextPiece piece;
  piece.tokens.assign(example.tokens.begin(), example.tokens.end());
  piece.targets.assign(example.tokens.size(), tasks::kNoTarget);
  piece.ids = task_->Ids(example, example.tokens);
  for (size_t i = example.prompt; i < example.tokens.size(); ++i) {
    piece.targets[i - 1] = example.tokens[i];
  }
  if (marks_prompts_) piece.prompt = static_cast<int64_t>(example.prompt);
  return piece;
}

}  // namespace lengthwise::worker::data
