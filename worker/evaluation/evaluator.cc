#include "worker/evaluation/evaluator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/cat.h"
#include "c10/core/GradMode.h"
#include "random/stream.h"
#include "worker/evaluation/scorer.h"

namespace lengthwise::worker::evaluation {
namespace {

using data::Batch;

// Logits, a term added to them, their sum and probabilities.
constexpr int64_t kLogitCopies = 4;
// The feed-forward's hidden layer before and after its non-linearity, and queries, keys, values and
// residuals.
constexpr int64_t kActivationCopies = 4;

// Without targets.
Batch BatchOf(const data::GivenSequence& given) {
  return {
      .rows = 1,
      .tokens_per_row = static_cast<int64_t>(std::max(given.tokens.size(), given.numbers.size())),
      .outputs_per_row = static_cast<int64_t>(given.mask.size()),
      .tokens = given.tokens,
      .numbers = given.numbers,
      .mask = given.mask,
      .ids = given.ids};
}

// A map's token for a position at which the model saw a number.
constexpr int32_t kNumberToken = -1;

}  // namespace

v1::AttentionMap MakeAttentionMap(int64_t length, const Batch& batch, const at::Tensor& positions,
                                  const models::Capture& capture) {
  v1::AttentionMap map;
  map.set_length(static_cast<int32_t>(length));
  for (const int64_t token : batch.tokens) map.add_tokens(static_cast<int32_t>(token));
  for (const double number : batch.numbers) map.add_numbers(number);
  if (batch.tokens.empty()) map.mutable_tokens()->Resize(map.numbers_size(), kNumberToken);
  const at::Tensor host_positions = positions.cpu();
  const double* const first = host_positions.const_data_ptr<double>();
  const std::vector<double> places(first, first + map.tokens_size());
  if (std::all_of(places.begin(), places.end(), [](double p) { return p == std::floor(p); })) {
    map.mutable_positions()->Assign(places.begin(), places.end());
  } else {
    map.mutable_real_positions()->Assign(places.begin(), places.end());
  }
  map.set_layers(static_cast<int32_t>(capture.attention_probabilities.size()));
  for (const at::Tensor& layer : capture.attention_probabilities) {
    // [P, B, H, n, n] -> [H, n, n] of the first member and sequence
    const at::Tensor probabilities =
        layer.select(0, 0).select(0, 0).to(at::kCPU, at::kFloat).contiguous();
    map.set_heads(static_cast<int32_t>(probabilities.size(0)));
    map.mutable_probabilities()->append(static_cast<const char*>(probabilities.const_data_ptr()),
                                        static_cast<size_t>(probabilities.numel()) * sizeof(float));
  }
  return map;
}

at::Tensor Evaluator::Positions(int64_t length, int64_t members, const Batch& batch, int64_t first,
                                at::Device device) const {
  const bool each = positions_.each();
  const int64_t tokens = batch.tokens_per_row, rows = each ? batch.rows : positions_.draws();
  constexpr auto kPurpose = random::Purpose::kEvaluationPositions;
  const auto step = static_cast<uint64_t>(length);
  std::vector<double> chosen =
      positions_.from_data()
          ? positions_.WithOffset(batch.ids, options_.seed, kPurpose, step)
          : positions_.DrawRows(options_.seed, kPurpose, step, each ? first : 0, rows, tokens);
  // An input of a user has no ids.
  chosen.resize(static_cast<size_t>(rows * tokens));
  const at::Tensor positions = data::ToDevice(chosen, {1, rows, tokens}, at::kDouble, device)
                                   .expand({members, rows, tokens})
                                   .contiguous();
  return each ? positions.unsqueeze(1) : positions;
}

Evaluator::Pass Evaluator::Forward(const models::ParameterSet& parameters, int64_t length,
                                   Batch& batch, int64_t first, double embedding_noise,
                                   models::Capture* capture) const {
  const c10::NoGradGuard no_gradients;
  const int64_t members = parameters.members();
  const at::Device device = parameters.any().device();
  Pass pass = {.tensors = data::ToTensors(batch, device, parameters.any().scalar_type()),
               .positions = Positions(length, members, batch, first, device)};
  // For networks with dropout at evaluation; the same for all members.
  const models::DropoutNumbers dropout = {
      .seeds = std::vector<uint64_t>(static_cast<size_t>(members), options_.seed),
      .purpose = random::Purpose::kEvaluationDropout,
      .step = static_cast<uint64_t>(length),
      .first_sequence = first,
      .embedding_noise = embedding_noise};
  pass.outputs = network_.Forward(parameters, data::ForEachMember(pass.tensors.input, members),
                                  pass.positions, batch.outputs_per_row, &dropout, capture);
  return pass;
}

int64_t Evaluator::Chunk(const models::ParameterSet& parameters, int64_t length) const {
  const int64_t tokens = examples_.SequenceTokens(length);
  const bool holds_logits = network_.HoldsLogits(parameters.any());
  const int64_t logits = holds_logits ? options_.heads * tokens * tokens : 0;
  const int64_t activations = 4 * options_.d_model * tokens;
  const int64_t bytes = static_cast<int64_t>(parameters.any().element_size()) *
                        (kLogitCopies * logits + kActivationCopies * activations);
  return std::max<int64_t>(1, options_.memory_bytes / (parameters.members() * bytes));
}

std::optional<std::vector<LengthScore>> Evaluator::Score(const models::ParameterSet& parameters,
                                                         int64_t length, int64_t asked,
                                                         const std::function<bool()>& keep_going,
                                                         const ScoreOptions& options) const {
  const int64_t members = parameters.members();
  const int64_t sequences = examples_.EvaluationSequences(length, asked);
  const auto score = [&](bool whole_numbers, Scorer& scorer) {
    const auto source = [&](int64_t first, int64_t most, Batch& batch) {
      examples_.AppendEvaluation(
          {.seed = SequenceSeed(options_.seed, options),
           .n = length,
           .asked = asked,
           .first = first,
           .count = std::min(most, examples_.RowsOfOneShape(length, asked, first)),
           .whole_numbers = whole_numbers,
           .validation = options.validation},
          batch);
    };
    return ScoreSource(parameters, length, sequences, source, keep_going, options.embedding_noise,
                       scorer);
  };
  auto scores =
      score(/*whole_numbers=*/false,
            *CreateScorer(examples_, members, parameters.any().device(), length, options));
  if (!scores.has_value() || !options.rounding) return scores;
  const auto rounded =
      score(/*whole_numbers=*/true, *CreateRoundingScorer(examples_.rounding_unit(), members));
  if (!rounded.has_value()) return std::nullopt;
  for (size_t i = 0; i < scores->size(); ++i) {
    (*scores)[i].metrics["rounding_accuracy"] = (*rounded)[i].accuracy;
  }
  return scores;
}

std::optional<LengthScore> Evaluator::ScoreDataSet(const models::ParameterSet& parameters,
                                                   uint64_t data_seed, int64_t length,
                                                   int64_t count,
                                                   const std::function<bool()>& keep_going) const {
  const std::unique_ptr<Scorer> scorer =
      CreateScorer(examples_, parameters.members(), parameters.any().device(), length);
  auto scores = ScoreSource(
      parameters, length, count,
      [&](int64_t first, int64_t most, Batch& batch) {
        examples_.AppendTraining({.seed = data_seed,
                                  .purpose = random::Purpose::kDataSet,
                                  .step = static_cast<uint64_t>(length),
                                  .rows = data::RowsFrom(first, std::min(most, count - first))},
                                 length, batch);
      },
      keep_going, /*embedding_noise=*/0, *scorer);
  if (!scores.has_value()) return std::nullopt;
  return scores->front();
}

std::optional<std::vector<LengthScore>> Evaluator::ScoreSource(
    const models::ParameterSet& parameters, int64_t length, int64_t sequences, const Source& source,
    const std::function<bool()>& keep_going, double embedding_noise, Scorer& scorer) const {
  const int64_t chunk = Chunk(parameters, length);
  for (int64_t first = 0; first < sequences;) {
    if (!keep_going()) return std::nullopt;
    Batch batch;
    source(first, chunk, batch);
    const Pass pass = Forward(parameters, length, batch, first, embedding_noise, nullptr);
    scorer.Add(pass.outputs, pass.tensors);
    first += batch.rows;
  }
  return scorer.Scores();
}

v1::AttentionMap Evaluator::CaptureAttention(const models::ParameterSet& parameters, int64_t length,
                                             int64_t sequence) const {
  Batch batch;
  examples_.AppendEvaluation({.seed = options_.seed,
                              .n = length,
                              .asked = sequence + 1,
                              .first = sequence,
                              .count = 1,
                              .in_order = true},
                             batch);
  v1::AttentionMap map = Capture(parameters, length, batch, sequence);
  map.set_sequence(static_cast<int32_t>(sequence));
  return map;
}

v1::AttentionMap Evaluator::CaptureAttention(const models::ParameterSet& parameters,
                                             const data::GivenSequence& given) const {
  Batch batch = BatchOf(given);
  return Capture(parameters, given.length, batch, 0);
}

v1::Answer Evaluator::Predict(const models::ParameterSet& parameters,
                              const data::GivenSequence& given) const {
  const std::unique_ptr<Scorer> scorer =
      CreateScorer(examples_, 1, parameters.any().device(), given.length, {.answers = 1});
  const auto scores = ScoreSource(
      parameters, given.length, /*sequences=*/1,
      [&](int64_t, int64_t, Batch& batch) {
        // The targets are not known, and no target is compared with.
        batch = BatchOf(given);
        if (examples_.targets() == data::Targets::kNumbers) {
          batch.number_targets.resize(given.mask.size());
        } else {
          batch.targets.resize(given.mask.size());
        }
      },
      [] { return true; }, /*embedding_noise=*/0, *scorer);
  v1::Answer answer = scores->front().answers.front();
  answer.clear_expected();
  answer.clear_wrong();
  return answer;
}

v1::AttentionMap Evaluator::Capture(const models::ParameterSet& parameters, int64_t length,
                                    Batch& batch, int64_t sequence) const {
  models::Capture capture;
  const Pass pass = Forward(parameters, length, batch, sequence, /*embedding_noise=*/0, &capture);
  return MakeAttentionMap(length, batch, pass.positions, capture);
}

std::vector<at::Tensor> Evaluator::CaptureActivations(const models::ParameterSet& parameters,
                                                      int64_t length, int64_t sequences) const {
  sequences = examples_.EvaluationSequences(length, sequences);
  const int64_t chunk = Chunk(parameters, length);
  std::vector<std::vector<at::Tensor>> parts;  // by depth
  for (int64_t first = 0, rows = 0; first < sequences; first += rows) {
    rows = std::min(chunk, examples_.RowsOfOneShape(length, sequences, first));
    Batch batch;
    examples_.AppendEvaluation(
        {.seed = options_.seed, .n = length, .asked = sequences, .first = first, .count = rows},
        batch);
    models::Capture capture{.keep_attention = false};
    Forward(parameters, length, batch, first, /*embedding_noise=*/0, &capture);
    // A looped network has more depths for longer inputs: those of all sequences are kept.
    if (first == 0 || capture.depths.size() < parts.size()) parts.resize(capture.depths.size());
    for (size_t depth = 0; depth < parts.size(); ++depth) {
      // Copies, because a view would keep the outputs' activations alive.
      parts[depth].push_back(capture.depths[depth]
                                 .select(0, 0)
                                 .narrow(1, 0, examples_.InputTokens(length))
                                 .clone(at::MemoryFormat::Contiguous)
                                 .cpu());
    }
  }
  std::vector<at::Tensor> activations;
  for (const std::vector<at::Tensor>& depth : parts) activations.push_back(at::cat(depth));
  return activations;
}

}  // namespace lengthwise::worker::evaluation
