#include "worker/evaluation/evaluator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ATen/ATen.h"
#include "c10/core/GradMode.h"
#include "random/stream.h"
#include "worker/evaluation/chunking.h"

namespace lengthwise::worker::evaluation {
namespace {

using training::Batch;

// A copy of host numbers on the device.
template <typename T>
at::Tensor ToDevice(std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type,
                    at::Device device) {
  return at::from_blob(values.data(), shape, at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

// Row `row` of matrices that stand side by side.
std::vector<float> JoinedRow(const std::vector<at::Tensor>& parts, int64_t row) {
  std::vector<float> joined;
  for (const at::Tensor& part : parts) {
    const at::Tensor numbers = part.select(0, row).contiguous();
    const float* const first = numbers.const_data_ptr<float>();
    joined.insert(joined.end(), first, first + numbers.numel());
  }
  return joined;
}

// The device and type of the parameters: every network has at least one.
const at::Tensor& Sample(const models::ParameterSet& parameters) { return parameters[0]; }

}  // namespace

at::Tensor Evaluator::Positions(int64_t length, int64_t members, at::Device device) const {
  const int64_t tokens = examples_.SequenceTokens(length);
  std::vector<int64_t> drawn = positions_.DrawBatch(
      options_.seed, random::Purpose::kEvaluationPositions, static_cast<uint64_t>(length), tokens);
  return ToDevice(drawn, {1, positions_.draws(), tokens}, at::kLong, device)
      .expand({members, positions_.draws(), tokens})
      .contiguous();
}

models::DropoutNumbers Evaluator::Dropout(int64_t length, int64_t members,
                                          int64_t first_sequence) const {
  return {.seeds = std::vector<uint64_t>(static_cast<size_t>(members), options_.seed),
          .purpose = random::Purpose::kEvaluationDropout,
          .step = static_cast<uint64_t>(length),
          .first_sequence = first_sequence};
}

int64_t Evaluator::Chunk(const models::ParameterSet& parameters, int64_t tokens) const {
  return SequencesPerChunk(
      {.tokens = tokens,
       .heads = options_.heads,
       .d_model = options_.d_model,
       .bytes_per_number = static_cast<int64_t>(Sample(parameters).element_size())},
      parameters.members(), options_.memory_bytes);
}

std::optional<std::vector<LengthScore>> Evaluator::Score(const models::ParameterSet& parameters,
                                                         int64_t length, int64_t asked,
                                                         const std::function<bool()>& keep_going,
                                                         const ScoreOptions& options) const {
  return ScoreSource(
      parameters, length, examples_.EvaluationSequences(length, asked),
      [&](int64_t first, int64_t rows, Batch& batch) {
        examples_.AppendEvaluation(options_.seed, length, first, rows, batch);
      },
      keep_going, options);
}

std::optional<LengthScore> Evaluator::ScoreDataSet(const models::ParameterSet& parameters,
                                                   uint64_t data_seed, int64_t length,
                                                   int64_t count,
                                                   const std::function<bool()>& keep_going) const {
  auto scores = ScoreSource(parameters, length, count,
                            [&](int64_t first, int64_t rows, Batch& batch) {
                              examples_.AppendTraining({.seed = data_seed,
                                                        .purpose = random::Purpose::kDataSet,
                                                        .step = static_cast<uint64_t>(length),
                                                        .rows = training::RowsFrom(first, rows)},
                                                       length, batch);
                            },
                            keep_going, {});
  if (!scores.has_value()) return std::nullopt;
  return scores->front();
}

std::optional<std::vector<LengthScore>> Evaluator::ScoreSource(
    const models::ParameterSet& parameters, int64_t length, int64_t sequences, const Source& source,
    const std::function<bool()>& keep_going, const ScoreOptions& wanted) const {
  const c10::NoGradGuard no_gradients;
  const int64_t members = parameters.members();
  const at::Device device = Sample(parameters).device();
  const at::Tensor positions = Positions(length, members, device);
  const int64_t chunk = Chunk(parameters, positions.size(2));

  at::Tensor correct = at::zeros({members}, at::TensorOptions().dtype(at::kLong).device(device));
  at::Tensor loss = at::zeros({members}, at::TensorOptions().dtype(at::kDouble).device(device));
  std::vector<at::Tensor> each_correct, each_loss;  // [members, rows]
  int64_t counted = 0;
  int64_t outputs = 0;
  for (int64_t first = 0; first < sequences; first += chunk) {
    if (!keep_going()) return std::nullopt;
    const int64_t rows = std::min(chunk, sequences - first);
    Batch batch;
    source(first, rows, batch);
    const int64_t m = batch.outputs_per_row;
    // All members see the same sequences.
    const at::Tensor tokens =
        ToDevice(batch.tokens, {1, rows, batch.tokens_per_row}, at::kLong, device)
            .expand({members, rows, batch.tokens_per_row})
            .contiguous();
    const at::Tensor targets = ToDevice(batch.targets, {1, rows, m}, at::kLong, device);
    const at::Tensor mask = ToDevice(batch.mask, {1, rows, m}, at::kByte, device).to(at::kBool);

    models::DropoutNumbers dropout = Dropout(length, members, first);
    dropout.embedding_noise = wanted.embedding_noise;
    const at::Tensor logits = network_.Forward(parameters, tokens, positions, m, &dropout, nullptr);
    const at::Tensor log_likelihoods =
        at::log_softmax(logits, -1)
            .gather(-1, targets.expand({members, rows, m}).unsqueeze(-1))
            .squeeze(-1);
    const at::Tensor right =
        logits.argmax(-1).eq(targets).logical_and_(mask);  // [members, rows, m]
    loss.sub_(log_likelihoods.to(at::kDouble).flatten(1).sum(1));
    correct.add_(right.flatten(1).sum(1, false, at::kLong));
    if (wanted.each_sequence) {
      each_correct.push_back(right.sum(2).to(at::kFloat).div(mask.sum(2).clamp_min(1)).cpu());
      each_loss.push_back(log_likelihoods.to(at::kFloat).mean(2).neg().cpu());
    }
    counted += std::count(batch.mask.begin(), batch.mask.end(), 1);
    outputs += rows * m;
  }

  const at::Tensor host_correct = correct.cpu();
  const at::Tensor host_loss = loss.cpu();
  std::vector<LengthScore> scores(static_cast<size_t>(members));
  for (int64_t member = 0; member < members; ++member) {
    scores[static_cast<size_t>(member)] = {
        .accuracy = counted == 0
                        ? 0
                        : static_cast<double>(host_correct.const_data_ptr<int64_t>()[member]) /
                              static_cast<double>(counted),
        .loss = outputs == 0
                    ? 0
                    : host_loss.const_data_ptr<double>()[member] / static_cast<double>(outputs),
        .sequences = sequences,
        .each_accuracy = JoinedRow(each_correct, member),
        .each_loss = JoinedRow(each_loss, member)};
  }
  return scores;
}

v1::AttentionMap Evaluator::CaptureAttention(const models::ParameterSet& parameters, int64_t length,
                                             int64_t sequence) const {
  Batch batch;
  examples_.AppendEvaluation(options_.seed, length, sequence, 1, batch);
  v1::AttentionMap map =
      Capture(parameters, {.length = length, .tokens = std::move(batch.tokens)}, sequence);
  map.set_sequence(static_cast<int32_t>(sequence));
  return map;
}

v1::AttentionMap Evaluator::CaptureAttention(const models::ParameterSet& parameters,
                                             const training::GivenSequence& given) const {
  return Capture(parameters, given, 0);
}

v1::AttentionMap Evaluator::Capture(const models::ParameterSet& parameters,
                                    const training::GivenSequence& given, int64_t place) const {
  const int64_t length = given.length;
  std::vector<int64_t> sequence = given.tokens;
  const c10::NoGradGuard no_gradients;
  const int64_t members = parameters.members();
  const at::Device device = Sample(parameters).device();
  const at::Tensor positions = Positions(length, members, device);
  const auto n = static_cast<int64_t>(sequence.size());
  const at::Tensor tokens =
      ToDevice(sequence, {1, 1, n}, at::kLong, device).expand({members, 1, n}).contiguous();
  models::Capture capture;
  const models::DropoutNumbers dropout = Dropout(length, members, place);
  (void)network_.Forward(parameters, tokens, positions, examples_.OutputTokens(length), &dropout,
                         &capture);

  v1::AttentionMap map;
  map.set_length(static_cast<int32_t>(length));
  for (const int64_t token : sequence) map.add_tokens(static_cast<int32_t>(token));
  const at::Tensor host_positions = positions.cpu();
  for (int64_t i = 0; i < n; ++i) map.add_positions(host_positions.const_data_ptr<int64_t>()[i]);
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

std::vector<at::Tensor> Evaluator::CaptureActivations(const models::ParameterSet& parameters,
                                                      int64_t length, int64_t sequences) const {
  const c10::NoGradGuard no_gradients;
  const int64_t members = parameters.members();
  const at::Device device = Sample(parameters).device();
  const at::Tensor positions = Positions(length, members, device);
  const int64_t chunk = Chunk(parameters, positions.size(2));
  std::vector<std::vector<at::Tensor>> parts;  // by depth
  for (int64_t first = 0; first < sequences; first += chunk) {
    const int64_t rows = std::min(chunk, sequences - first);
    Batch batch;
    examples_.AppendEvaluation(options_.seed, length, first, rows, batch);
    const at::Tensor tokens =
        ToDevice(batch.tokens, {1, rows, batch.tokens_per_row}, at::kLong, device)
            .expand({members, rows, batch.tokens_per_row})
            .contiguous();
    models::Capture capture{.keep_attention = false};
    const models::DropoutNumbers dropout = Dropout(length, members, first);
    (void)network_.Forward(parameters, tokens, positions, batch.outputs_per_row, &dropout,
                           &capture);
    parts.resize(capture.depths.size());
    for (size_t depth = 0; depth < parts.size(); ++depth) {
      // Its own memory: a view would keep the outputs' activations alive.
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
