// Scores models at a length, and captures their attention and activations.
#ifndef LENGTHWISE_WORKER_EVALUATION_EVALUATOR_H_
#define LENGTHWISE_WORKER_EVALUATION_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/encodings/positions.h"
#include "models/layers/dropout.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "proto/event.pb.h"
#include "worker/data/batch_tensors.h"
#include "worker/data/examples.h"
#include "worker/evaluation/length_score.h"
#include "worker/evaluation/scorer.h"

namespace lengthwise::worker::evaluation {

// Converts the attention captured in a forward pass to an event: returns the map for the first
// member and sequence of `capture`. The model read tokens or numbers of `batch`, one sequence, with
// the first draw of `positions` [P, S, T], where T is at least the sequence's length.
v1::AttentionMap MakeAttentionMap(int64_t length, const data::Batch& batch,
                                  const at::Tensor& positions, const models::Capture& capture);

// Samples, positions and dropout are functions of the evaluation's seed and the length alone, so
// all models see the same ones at every evaluation. All sequences of a length share its drawn
// positions. Keeps references to its arguments.
class Evaluator {
 public:
  struct Options {
    // Seed of samples and positions.
    uint64_t seed = 0;
    // Size of the network, for the memory estimate.
    int64_t heads = 0;
    int64_t d_model = 0;
    // Limit on a forward pass's estimated memory, in bytes. Sequences are evaluated in chunks that
    // fit.
    int64_t memory_bytes = int64_t{256} << 20;
  };

  Evaluator(const data::Examples& examples, const models::Network& network,
            const models::PositionPolicy& positions, const Options& options)
      : examples_(examples), network_(network), positions_(positions), options_(options) {}

  // Scores each member of the set on the sequences that exist at `length` when `sequences` are
  // requested (Examples::EvaluationSequences). Calls `keep_going` before each chunk; returns
  // nullopt if it returns false.
  std::optional<std::vector<LengthScore>> Score(const models::ParameterSet& parameters,
                                                int64_t length, int64_t sequences,
                                                const std::function<bool()>& keep_going,
                                                const ScoreOptions& options = {}) const;

  // Scores the set's one member on training examples 0 .. count - 1 of length `length`, from the
  // data set of this data seed.
  std::optional<LengthScore> ScoreDataSet(const models::ParameterSet& parameters,
                                          uint64_t data_seed, int64_t length, int64_t count,
                                          const std::function<bool()>& keep_going) const;

  // Returns the attention probabilities of the set's first member on evaluation sequence `sequence`
  // (from 0) of `length`, with the positions of the first block.
  v1::AttentionMap CaptureAttention(const models::ParameterSet& parameters, int64_t length,
                                    int64_t sequence) const;

  // As above, for a user's sequence.
  v1::AttentionMap CaptureAttention(const models::ParameterSet& parameters,
                                    const data::GivenSequence& given) const;

  // Returns what the set's one member answers to a user's sequence.
  v1::Answer Predict(const models::ParameterSet& parameters,
                     const data::GivenSequence& given) const;

  // Returns the activations of the set's first member at the input tokens of the first `sequences`
  // evaluation sequences of `length`, or of all if fewer exist: one tensor [sequences,
  // InputTokens(length), d] on the CPU for each of models::Capture::depths.
  std::vector<at::Tensor> CaptureActivations(const models::ParameterSet& parameters, int64_t length,
                                             int64_t sequences) const;

 private:
  // Appends sequences of one shape from `first` on, at least one and at most `most`, to an empty
  // batch.
  using Source = std::function<void(int64_t first, int64_t most, data::Batch& batch)>;

  std::optional<std::vector<LengthScore>> ScoreSource(const models::ParameterSet& parameters,
                                                      int64_t length, int64_t sequences,
                                                      const Source& source,
                                                      const std::function<bool()>& keep_going,
                                                      double embedding_noise, Scorer& scorer) const;
  // Captures the attention for a batch of one sequence that is, or stands for, evaluation sequence
  // `sequence` of `length`.
  v1::AttentionMap Capture(const models::ParameterSet& parameters, int64_t length,
                           data::Batch& batch, int64_t sequence) const;
  // Number of sequences of `length` per chunk, at least 1, by an estimate of a forward pass's peak
  // memory: a few copies of activations [tokens, 4 d_model] and, if the network holds them, of one
  // layer's attention logits [heads, tokens, tokens]. A layer's tensors are freed before the next
  // layer's are allocated.
  int64_t Chunk(const models::ParameterSet& parameters, int64_t length) const;
  struct Pass {
    data::BatchTensors tensors;
    at::Tensor positions;
    at::Tensor outputs = {};
  };
  // Passes the batch, which begins with sequence `first`, through each member's network. The
  // tensors may share the batch's memory.
  Pass Forward(const models::ParameterSet& parameters, int64_t length, data::Batch& batch,
               int64_t first, double embedding_noise, models::Capture* capture) const;
  // int64 [members, S, tokens]
  at::Tensor Positions(int64_t length, int64_t members, const data::Batch& batch, int64_t first,
                       at::Device device) const;

  const data::Examples& examples_;
  const models::Network& network_;
  const models::PositionPolicy& positions_;
  const Options options_;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_EVALUATOR_H_
