#include "worker/evaluation/evaluator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ATen/ATen.h"
#include "c10/core/GradMode.h"
#include "random/stream.h"
#include "worker/evaluation/attention_map.h"
#include "worker/evaluation/chunking.h"
#include "worker/evaluation/to_device.h"

namespace lengthwise::worker::evaluation {
namespace {

using training::Batch;

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

std::optional<std::vector<LengthScore>> Evaluator::Score(
    const models::ParameterSet& parameters, int64_t length, int64_t asked,
    const std::function<bool()>& keep_going) const {
  const c10::NoGradGuard no_gradients;
  const int64_t members = parameters.members();
  const at::Device device = Sample(parameters).device();
  const at::Tensor positions = Positions(length, members, device);
  const int64_t chunk = Chunk(parameters, positions.size(2));
  const int64_t sequences = examples_.EvaluationSequences(length, asked);

  at::Tensor correct = at::zeros({members}, at::TensorOptions().dtype(at::kLong).device(device));
  at::Tensor loss = at::zeros({members}, at::TensorOptions().dtype(at::kDouble).device(device));
  int64_t counted = 0;
  int64_t outputs = 0;
  for (int64_t first = 0; first < sequences; first += chunk) {
    if (!keep_going()) return std::nullopt;
    const int64_t rows = std::min(chunk, sequences - first);
    Batch batch;
    examples_.AppendEvaluation(options_.seed, length, first, rows, batch);
    const int64_t m = batch.outputs_per_row;
    // All members see the same sequences.
    const at::Tensor tokens =
        ToDevice(batch.tokens, {1, rows, batch.tokens_per_row}, at::kLong, device)
            .expand({members, rows, batch.tokens_per_row})
            .contiguous();
    const at::Tensor targets = ToDevice(batch.targets, {1, rows, m}, at::kLong, device);
    const at::Tensor mask = ToDevice(batch.mask, {1, rows, m}, at::kByte, device).to(at::kBool);

    const models::DropoutNumbers dropout = Dropout(length, members, first);
    const at::Tensor logits = network_.Forward(parameters, tokens, positions, m, &dropout, nullptr);
    const at::Tensor log_likelihoods =
        at::log_softmax(logits, -1)
            .gather(-1, targets.expand({members, rows, m}).unsqueeze(-1))
            .squeeze(-1);
    loss.sub_(log_likelihoods.to(at::kDouble).flatten(1).sum(1));
    correct.add_(
        logits.argmax(-1).eq(targets).logical_and_(mask).flatten(1).sum(1, false, at::kLong));
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
        .sequences = sequences};
  }
  return scores;
}

v1::AttentionMap Evaluator::CaptureAttention(const models::ParameterSet& parameters,
                                             int64_t length) const {
  Batch batch;
  examples_.AppendEvaluation(options_.seed, length, 0, 1, batch);
  return CaptureAttention(parameters, {.length = length, .tokens = std::move(batch.tokens)});
}

v1::AttentionMap Evaluator::CaptureAttention(const models::ParameterSet& parameters,
                                             const training::GivenSequence& given) const {
  const int64_t length = given.length;
  const c10::NoGradGuard no_gradients;
  const int64_t members = parameters.members();
  const at::Device device = Sample(parameters).device();
  const at::Tensor positions = Positions(length, members, device);
  const auto n = static_cast<int64_t>(given.tokens.size());
  const at::Tensor tokens =
      ToDevice(given.tokens, {1, 1, n}, at::kLong, device).expand({members, 1, n}).contiguous();
  models::Capture capture;
  const models::DropoutNumbers dropout = Dropout(length, members, 0);
  (void)network_.Forward(parameters, tokens, positions, examples_.OutputTokens(length), &dropout,
                         &capture);

  return MakeAttentionMap(length, given.tokens, positions, capture);
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
